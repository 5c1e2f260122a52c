"""Where a Hugging Face Space (OWNER/NAME) is: its image for Docker, its git repository for uv."""

from __future__ import annotations

import re


def space_image(repo_id: str, tag: str = "latest") -> str:
    """The image as the Spaces' registry names it: small letters and digits, every run of others is one hyphen."""
    return f"registry.hf.space/{re.sub(r'[^a-z0-9]+', '-', repo_id.lower())}:{tag}"


def space_repository(repo_id: str) -> str:
    """The source for `UVProvider`."""
    return f"git+https://huggingface.co/spaces/{repo_id}"
