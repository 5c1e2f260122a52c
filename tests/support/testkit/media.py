"""Small real pictures and sounds, made on the spot."""

from __future__ import annotations

import base64
import io
import wave

from PIL import Image

from openenv_client.frames import JsonObject


def picture(kind: str = "PNG", size: tuple[int, int] = (40, 30), colour: tuple[int, int, int] = (200, 30, 60)) -> bytes:
    """A one-coloured picture. `kind` is Pillow's name of the format: PNG, JPEG, GIF, WEBP."""
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, kind)
    return buffer.getvalue()


def sound() -> bytes:
    """A tenth of a second of silence as WAV."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes(bytes(1600))
    return buffer.getvalue()


def mp3(frames: int = 3) -> bytes:
    """Silent MPEG 1 layer III frames: 128 kbit/s at 44.1 kHz, 417 bytes each."""
    return (b"\xff\xfb\x90\x00" + bytes(413)) * frames


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def decoded(block: JsonObject) -> Image.Image:
    """The picture in an image block."""
    return Image.open(io.BytesIO(base64.b64decode(block["data"])))
