"""An image registry on loopback with one small image, for pulls (OCI distribution: manifests and blobs, read only).

    with registry.serving() as shop:
        ... shop.image ...          # 127.0.0.1:PORT/small:1, which the engine may pull without TLS
        shop.gate.clear()           # from now on the layer's last bytes are held back, until it is set
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

HELD_S: Final = 30.0
_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG: Final = "application/vnd.docker.container.image.v1+json"
_LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar.gzip"


@dataclass(frozen=True)
class Shop:
    """`asked` is set when somebody has begun to load the layer."""

    image: str
    gate: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(port: int = 9000) -> Iterator[Shop]:
    """The image holds one file, exposes `port` and has no command. Its content is new each time, so no engine has it."""
    blobs: dict[str, bytes] = {}
    manifest = _manifest(blobs, port)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    shop = Shop(f"127.0.0.1:{server.server_address[1]}/small:1")
    shop.gate.set()
    server.daemon_threads = True
    server.shop, server.blobs, server.manifest = shop, blobs, manifest  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, name="registry", daemon=True)
    thread.start()
    try:
        yield shop
    finally:
        shop.gate.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


def _manifest(blobs: dict[str, bytes], port: int) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        content = repr(threading.get_ident()).encode() + repr(id(archive)).encode()
        member = tarfile.TarInfo("hello")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    plain = archive.getvalue()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"ExposedPorts": {f"{port}/tcp": {}}},
        "rootfs": {"type": "layers", "diff_ids": [_name(plain)]},
        "history": [{"created_by": "testkit.registry"}],
    }
    parts = [_part(blobs, _CONFIG, json.dumps(config).encode()), _part(blobs, _LAYER, gzip.compress(plain))]
    document = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": parts[0], "layers": parts[1:]}
    return json.dumps(document).encode()


def _part(blobs: dict[str, bytes], media_type: str, content: bytes) -> dict[str, Any]:
    blobs[_name(content)] = content
    return {"mediaType": media_type, "size": len(content), "digest": _name(content)}


def _name(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        last = self.path.rsplit("/", 1)[-1]
        if "/manifests/" in self.path:
            self._answer(_MANIFEST, self.server.manifest)
        elif last in self.server.blobs:
            self._answer("application/octet-stream", self.server.blobs[last], hold=last in self._layers())
        else:
            self._answer("application/json", b"{}")

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        """Nothing: what the engine asks for is no news."""

    def _layers(self) -> list[str]:
        return [each["digest"] for each in json.loads(self.server.manifest)["layers"]]

    def _answer(self, media_type: str, content: bytes, hold: bool = False) -> None:
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Docker-Content-Digest", _name(content))
        self.end_headers()
        if self.command == "HEAD":
            return
        shop: Shop = self.server.shop
        self.wfile.write(content[:-1])
        if hold:
            shop.asked.set()
            shop.gate.wait(HELD_S)
        try:
            self.wfile.write(content[-1:])
        except (BrokenPipeError, ConnectionResetError):
            return  # the engine gave the pull up
