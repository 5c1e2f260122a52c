"""A small server for tests of launching, run as a script: `plain_server.py PORT [WORD...]`. It answers /health and no more.

Its words: `noise` prints a megabyte first, `die` then exits with status 3, `deaf` ignores SIGTERM, `child` starts a process
that leaves the session and ignores SIGTERM too, `everywhere` listens on every interface (as it must in a container), `greedy`
binds without SO_REUSEADDR, `hungry` takes all the memory that there is, `sick` answers 503, `mute` never listens.
"""

from __future__ import annotations

import signal
import socketserver
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler

CHILD = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('child up', flush=True); signal.pause()"


class Health(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/health" else 404)
        self.end_headers()


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main(port: int, words: set[str]) -> int:
    if "deaf" in words:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "noise" in words:
        for number in range(20_000):
            print(f"line {number:05} {'x' * 40}")
    if "die" in words:
        print("cannot go on: the model file is missing", flush=True)
        return 3
    if "hungry" in words:
        eaten = []
        while True:
            eaten.append(bytearray(b"x" * 2**20))
    if "child" in words:
        subprocess.Popen([sys.executable, "-c", CHILD], start_new_session=True)
    if "mute" in words:
        threading.Event().wait()
    Health.status = 503 if "sick" in words else 200
    Server.allow_reuse_address = "greedy" not in words
    host = "0.0.0.0" if "everywhere" in words else "127.0.0.1"
    with Server((host, port), Health) as server:
        print(f"serving on {port}", flush=True)
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), set(sys.argv[2:])))
