"""The token file on disk: read at the start, and again when it changes, so that a token can be withdrawn at once."""

from __future__ import annotations

import logging
import os
import stat
import time
from pathlib import Path

from openenv_gateway.errors import ConfigError
from openenv_gateway.transports.tokens import Tokens, parse_tokens

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
MAX_BYTES = 2**20
OPEN_TO_OTHERS = stat.S_IROTH | stat.S_IWOTH

Stamp = tuple[int, int, int, int]


class BadTokenFile(ConfigError):
    """A token file that cannot be read, grants nobody anything, or has faults: all of them, with their lines, no token."""

    next_step = (
        "Correct the file and try again. A line is SCOPE NAME TOKEN, for example: agent team-blue, then the output of "
        "openssl rand -hex 32; lines that begin with # are comments."
    )

    def __init__(self, path: Path, faults: list[str]) -> None:
        super().__init__(f"token file {path}", faults)


def read_tokens(path: Path) -> Tokens:
    """The tokens in a file. Raises BadTokenFile, also for a file without any. Warns when other users may read it."""
    return TokenFile(path).tokens


class TokenFile:
    """The tokens in a file, kept up to date. Raises BadTokenFile when it is made and the file is no good."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: Stamp | None = None
        self._looked = time.monotonic()
        self._tokens = self._read()
        if not self._tokens:
            raise BadTokenFile(path, [f"{path}: no token in it: nobody could call"])

    @property
    def tokens(self) -> Tokens:
        """What the file grants now. It is looked at once a second at most.

        A changed file with faults changes nothing: that is logged, and the tokens that were read before stay valid.
        """
        now = time.monotonic()
        if now - self._looked >= LOOK_EVERY_S:
            self._looked = now
            self._refresh()
        return self._tokens

    def _refresh(self) -> None:
        if self._seen() == self._stamp:
            return
        try:
            self._tokens = self._read()
        except BadTokenFile as error:
            log.error("%s\nThe tokens that were read before stay valid.", error)
            return
        level = logging.INFO if self._tokens else logging.WARNING  # a file that was emptied withdraws every token
        log.log(level, "token file %s was read again: %d tokens", self.path, len(self._tokens))

    def _seen(self) -> Stamp | None:
        try:
            return _stamp(self.path.stat())
        except OSError:
            return None  # told by the read that follows: once, because the stamp of a file that is gone stays the same

    def _read(self) -> Tokens:
        self._stamp = None
        try:
            status = self.path.stat()
            self._stamp = _stamp(status)  # before the read: what changes meanwhile is seen at the next look
            if not stat.S_ISREG(status.st_mode):  # a pipe would block, and be empty at the second read
                raise BadTokenFile(self.path, [f"{self.path}: not a regular file"])
            with self.path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise BadTokenFile(self.path, [f"{self.path}: cannot be read: {why}"]) from error
        self._warn(status.st_mode)
        return _tokens_in(content, self.path)

    def _warn(self, mode: int) -> None:
        if mode & OPEN_TO_OTHERS:
            log.warning("token file %s is open to every user of this machine: chmod o= %s", self.path, self.path)


def _tokens_in(content: bytes, path: Path) -> Tokens:
    if len(content) > MAX_BYTES:
        raise BadTokenFile(path, [f"{path}: larger than {MAX_BYTES} bytes"])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadTokenFile(path, [f"{path}: not UTF-8: {error.reason} at byte {error.start}"]) from None
    tokens, faults = parse_tokens(text)
    if faults:
        raise BadTokenFile(path, [f"{path}:{line}: {fault}" for line, fault in faults])
    return tokens


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
