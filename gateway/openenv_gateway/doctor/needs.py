"""What the named environments need of a machine. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from openenv_client.providers.space import space_image
from openenv_gateway.pool.left_over import uses_docker
from openenv_gateway.settings import EnvironmentSettings, Source


@dataclass(frozen=True, slots=True)
class Needs:
    """`images` are those that the engine has to have, in the order in which they were named."""

    engine: bool = False
    uv: bool = False
    git: bool = False
    images: tuple[str, ...] = ()

    @classmethod
    def of(cls, environments: Iterable[EnvironmentSettings]) -> Needs:
        """Of these environments together; nothing for none."""
        sources = [environment.source for environment in environments]
        images = [_image(source) for source in sources if uses_docker(source)]
        cloned = any(_is_cloned(source) for source in sources)
        uv = cloned or any(source.kind == "uv" for source in sources)
        return cls(engine=bool(images), uv=uv, git=cloned, images=tuple(dict.fromkeys(images)))


def _image(source: Source) -> str:
    return space_image(source.target) if source.kind == "hf" else source.target


def _is_cloned(source: Source) -> bool:
    if source.kind == "hf":
        return source.launch == "uv"
    return source.kind == "uv" and source.target.startswith("git+")
