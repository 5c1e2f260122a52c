"""What was cut from one result stays readable as a whole. Pure: it is collected here, kept by `sessions.latest`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from openenv_client.frames import JsonObject

JSON, TEXT = "application/json", "text/plain"


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that was cut, as it was before: UTF-8 text, or base64 (`is_blob`) of bytes that are of this type."""

    mime_type: str
    body: bytes
    is_blob: bool = False

    def contents(self, uri: str) -> JsonObject:
        """As one of the `contents` of `resources/read`."""
        return {"uri": uri, "mimeType": self.mime_type, "blob" if self.is_blob else "text": self.body.decode()}


class Whole:
    """Collects what is cut from one result; whoever makes the result keeps `parts` for reading at the URI.

    `place` gives the URI and is asked when something is cut, which is rare. `room`: how many bytes can be kept; what does not
    fit is lost, as it is where there is no Whole at all, and no URI is told for it.
    """

    def __init__(self, place: Callable[[], str], room: int) -> None:
        self.parts: list[Part] = []
        self._place, self._room = place, room
        self._uri: str | None = None

    def add(self, part: Part) -> str | None:
        """Where the part can be read, None if nowhere."""
        if len(part.body) > self._room:
            return None
        self._room -= len(part.body)
        self.parts.append(part)
        if self._uri is None:
            self._uri = self._place()
        return self._uri


def kept(whole: Whole | None, part: Part) -> str | None:
    """`whole.add(part)`, None where there is no Whole."""
    return None if whole is None else whole.add(part)
