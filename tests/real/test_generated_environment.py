"""A project as `openenv init` writes it: what a newcomer to OpenEnv starts from."""

from __future__ import annotations

import pytest
from testkit import servers, wire

pytestmark = pytest.mark.real


async def test_a_generated_project_serves_and_echoes(generated: servers.Server) -> None:
    async with wire.session(generated.base_url) as session:
        reset, step = await session.ask("reset"), await session.ask("step", {"message": "hi"})
    assert reset["data"]["observation"]["echoed_message"] == "Made Env environment ready!"
    assert step["data"]["observation"] | {"metadata": {}} == {"echoed_message": "hi", "message_length": 2, "metadata": {}}
    assert step["data"]["done"] is False
