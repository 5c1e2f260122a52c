"""A project as `openenv init` writes it: what a newcomer to OpenEnv starts from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from testkit import servers, venvs, wire

pytestmark = pytest.mark.real


async def test_a_generated_project_serves_and_echoes(tmp_path: Path, venv_python: Callable[[str], Path]) -> None:
    venv_python(venvs.OPENENV_0_10)
    project = servers.generate(tmp_path)
    with servers.launch_command(servers.app_command("server.app:app", project), project) as server:
        async with wire.session(server.base_url) as session:
            reset, step = await session.ask("reset"), await session.ask("step", {"message": "hi"})
    assert reset["data"]["observation"]["echoed_message"] == "Made Env environment ready!"
    assert step["data"]["observation"] | {"metadata": {}} == {"echoed_message": "hi", "message_length": 2, "metadata": {}}
    assert step["data"]["done"] is False
