"""Tokens with the official clients: a gateway of its own process, a real server, two agents who each have a token."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testkit import agents, cli
from testkit.agents import Refused, connected
from testkit.arcade import Arcade

from mcp import MCPError

pytestmark = pytest.mark.real

BLUE, RED = "b1" * 32, "4e" * 32


@pytest.fixture(scope="module")
def gateway(newest: Arcade, tmp_path_factory: pytest.TempPathFactory) -> Iterator[cli.GatewayProcess]:
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "tokens").touch(0o600)
    (folder / "tokens").write_text(f"agent blue {BLUE}\nagent red {RED}\n")
    (folder / "gateway.toml").write_text('token_file = "tokens"\n')
    with cli.serving(newest.spec("counter"), config=folder / "gateway.toml") as gateway:
        yield gateway
        assert not any(token in gateway.log() for token in (BLUE, RED))


@pytest.mark.parametrize("kind", agents.KINDS)
async def test_every_official_client_plays_with_its_token(gateway: cli.GatewayProcess, kind: str) -> None:
    async with connected(kind, gateway.url("counter"), token=BLUE) as agent:
        assert (await agent.reset(label="blue"))["observation"]["board"] == "blue: 0=0 of 20"
        assert (await agent.play("step", amount=3))["observation"]["value"] == 3
        assert (await agent.play("state"))["state"]["step_count"] == 1


@pytest.mark.parametrize("kind", agents.KINDS)
async def test_the_handle_of_somebody_else_is_unknown_to_every_official_client(gateway: cli.GatewayProcess, kind: str) -> None:
    async with connected(kind, gateway.url("counter"), token=BLUE) as blue:
        handle = (await blue.reset(label="blue"))["session_id"]
        async with connected(kind, gateway.url("counter"), token=RED) as red:
            error = await red.fail("step", amount=5, session_id=handle)
            assert error["code"] == "UNKNOWN_SESSION"
        assert (await blue.play("step", amount=3))["observation"]["board"] == "blue: 0+3=3 of 20"


@pytest.mark.parametrize("kind", [agents.MCP_2_AUTO, agents.MCP_2_LEGACY, agents.MCP_2_MODERN])
async def test_without_a_token_the_official_client_is_told_what_is_wanted(gateway: cli.GatewayProcess, kind: str) -> None:
    with pytest.raises((Refused, MCPError), match="Authorization: Bearer TOKEN"):
        async with connected(kind, gateway.url("counter")) as agent:
            await agent.tools()
