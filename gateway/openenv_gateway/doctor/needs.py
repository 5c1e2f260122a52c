"""What the named environments need of a machine. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from openenv_gateway.settings import EnvironmentSettings

ENGINE_KINDS = ("docker", "swarm", "hf")


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
        kinds = {source.kind for source in sources}
        return cls(
            engine=not kinds.isdisjoint(ENGINE_KINDS),
            uv="uv" in kinds,
            git=any(source.kind == "uv" and source.target.startswith("git+") for source in sources),
            images=tuple(dict.fromkeys(source.target for source in sources if source.kind in ("docker", "swarm"))),
        )
