"""The main job: an official MCP client plays a real environment through a real gateway, and gets what the environment gave.

Every episode is played twice, through the gateway and by hand over `/ws`, and compared step by step.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from PIL import Image
from testkit import agents, servers, wire
from testkit.agents import Agent, connected
from testkit.arcade import Arcade
from testkit.host_rules import broken_rules
from testkit.witness import Watched, watching

pytestmark = pytest.mark.real

ENVIRONMENTS = ("counter", "shapes", "toolbox", "gallery")
ALL_REVISIONS = (*agents.KINDS, "mcp-1.30/2025-06-18", "mcp-1.30/2025-03-26")


@dataclass(frozen=True)
class Move:
    """One tool call, and the action that it is on the wire."""

    tool: str
    arguments: dict[str, Any]
    action: dict[str, Any]


def step(**action: Any) -> Move:
    return Move("step", action, action)


def shape(kind: str, **action: Any) -> Move:
    return Move(f"step_{kind}", action, {"kind": kind, **action})


def tool(name: str, **arguments: Any) -> Move:
    return Move(name, arguments, {"type": "call_tool", "tool_name": name, "arguments": arguments})


RESET = {"seed": 3, "episode_id": "episode-1", "label": "blue"}
GAMES: dict[str, Sequence[Move]] = {
    "counter": [step(amount=5), step(amount=-2, remark="back"), step(amount=10), step(amount=10)],
    "shapes": [shape("circle", radius=2), shape("rectangle", width=2, height=3.5), shape("finish", remark="nice")],
    "toolbox": [
        tool("say", text="hi"),
        tool("note", text="one"),
        tool("measure", width=2, height=3),
        tool("picture", number=2),
        tool("sound"),
        tool("wait", seconds=0.05),
        tool("finish"),
    ],
}


@dataclass(frozen=True)
class Turn:
    """What came of one request: everything that both ways of playing must agree on."""

    reward: float | None
    done: bool
    observation: dict[str, Any]


async def direct(base_url: str, game: Sequence[Move]) -> tuple[list[Turn], dict[str, Any]]:
    """The game by hand over /ws: each turn, and the state at the end."""
    async with wire.session(base_url) as session:
        replies = [await session.ask("reset", RESET), *[await session.ask("step", move.action) for move in game]]
        state = await session.ask("state")
    datas = [reply["data"] for reply in replies]
    return [Turn(data["reward"], data["done"], plain(data["observation"])) for data in datas], state["data"]


async def through(agent: Agent, game: Sequence[Move]) -> tuple[list[Turn], dict[str, Any]]:
    """The same game through the gateway."""
    turns = [await agent.play("reset", **RESET), *[await agent.play(move.tool, **move.arguments) for move in game]]
    state = await agent.play("state")
    return [Turn(turn["reward"], turn["done"], plain(turn["observation"])) for turn in turns], state["state"]


def plain(observation: dict[str, Any]) -> dict[str, Any]:
    """The observation without what differs by design: the number of the server's session, a tool result's wrapping, nulls."""
    kept = {key: value for key, value in observation.items() if key != "session"}
    match kept.get("result"):
        case {"content": list(), "structured_content": value} | {"content": list(), "structuredContent": value}:
            kept["result"] = value
    return {key: value for key, value in kept.items() if value is not None}


@pytest.fixture(scope="module")
def front(arcade: Arcade) -> Iterator[Watched]:
    """A gateway in front of every environment of one version of the framework."""
    with watching(*map(arcade.spec, ENVIRONMENTS)) as watched:
        yield watched


@pytest.fixture(scope="module")
def newest_front(newest: Arcade) -> Iterator[Watched]:
    """The same in front of the newest version alone, for what does not depend on it."""
    with watching(*map(newest.spec, ENVIRONMENTS)) as watched:
        yield watched


# --- what is played --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", agents.KINDS)
@pytest.mark.parametrize("environment", GAMES)
async def test_a_game_through_the_gateway_is_the_game_over_ws_step_by_step(
    arcade: Arcade, front: Watched, environment: str, kind: str
) -> None:
    expected, expected_state = await direct(arcade.url(environment), GAMES[environment])
    async with connected(kind, front.url(environment)) as agent:
        turns, state = await through(agent, GAMES[environment])
        assert turns == expected
        assert state == expected_state
        assert (turns[-1].done, state["episode_id"], state["step_count"]) == (True, "episode-1", len(GAMES[environment]))
        over = await agent.fail(GAMES[environment][0].tool, **GAMES[environment][0].arguments)
        assert (over["code"], over["next_step"]) == ("EPISODE_OVER", "Call reset to start the next episode.")
        assert (await agent.reset())["done"] is False
        assert (await agent.play("state"))["state"]["step_count"] == 0


@pytest.mark.parametrize("kind", agents.KINDS)
async def test_every_tool_is_listed_with_a_description_and_a_schema_that_hosts_accept(newest_front: Watched, kind: str) -> None:
    names = {
        "counter": ["reset", "step", "state"],
        "shapes": ["reset", "step_circle", "step_rectangle", "step_finish", "state"],
        "toolbox": ["reset", "say", "note", "picture", "sound", "measure", "fail", "wait", "finish", "state"],
        "gallery": ["reset", "step", "state"],
    }
    for environment in ENVIRONMENTS if kind == agents.MCP_2_AUTO else ("shapes",):
        async with connected(kind, newest_front.url(environment)) as agent:
            tools = await agent.tools()
        assert list(tools) == names[environment]
        for described in tools.values():
            assert len(described["description"]) > 20
            assert broken_rules(described["inputSchema"]) == []
            assert described["outputSchema"]["type"] == "object"


async def test_a_step_says_where_it_acts_what_its_action_means_and_when_the_episode_is_over(newest_front: Watched) -> None:
    async with connected(agents.MCP_2_AUTO, newest_front.url("counter")) as agent:
        described = (await agent.tools())["step"]
    for part in ("CounterEnvironment", "Add an amount to the counter.", "When done is true the episode is over: call reset"):
        assert part in described["description"]
    amount = described["inputSchema"]["properties"]["amount"]
    assert (amount["type"], amount["minimum"], amount["maximum"]) == ("integer", -10, 10)
    assert amount["description"].startswith("How much to add; may be negative")


async def test_the_tools_of_an_mcp_environment_keep_reward_done_and_step_count(front: Watched) -> None:
    """Its own /mcp would lose them: there a call is no step."""
    async with connected(agents.MCP_2_LEGACY, front.url("toolbox")) as agent:
        await agent.reset()
        counts = []
        for _ in range(3):
            said = await agent.play("say", text="hi")
            assert (said["reward"], said["done"]) == (0.1, False)
            counts.append((await agent.play("state"))["state"]["step_count"])
        failed = await agent.call("fail", reason="the lid is stuck")
        counts.append((await agent.play("state"))["state"]["step_count"])
        assert (await agent.play("finish"))["done"] is True
    assert counts == [1, 2, 3, 4]
    assert failed["_meta"]["openenv/error"]["cause"].endswith("(execution_error): the lid is stuck")
    assert (failed["_meta"]["openenv/reward"], failed["_meta"]["openenv/done"]) == (0.1, False)


async def test_the_content_of_an_environments_tool_goes_through_as_it_is(front: Watched) -> None:
    async with connected(agents.MCP_2_AUTO, front.url("toolbox")) as agent:
        await agent.reset()
        text, picture, sound = [await agent.call("say", text="hi"), await agent.call("picture"), await agent.call("sound")]
    assert text["content"][0] == {"type": "text", "text": "hi"}
    assert (picture["content"][0]["type"], picture["content"][0]["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(picture["content"][0]["data"]).startswith(b"\x89PNG")
    assert sound["content"][0]["type"] == "audio" and base64.b64decode(sound["content"][0]["data"]).startswith(b"RIFF")
    assert json.loads(picture["content"][-1]["text"]) == {"reward": 0.1, "done": False}, "for hosts that read text only"


async def test_pictures_of_every_form_arrive_as_the_pixels_that_the_environment_sent(arcade: Arcade, front: Watched) -> None:
    look = {"number": 3, "size": 4}
    async with wire.session(arcade.url("gallery")) as session:
        await session.ask("reset")
        sent = (await session.ask("step", look))["data"]["observation"]
    async with connected(agents.MCP_2_AUTO, front.url("gallery")) as agent:
        await agent.reset()
        result = await agent.call("step", **look)
    shown = agents.told(result)["observation"]
    pixels = bytes(sent["screen"])
    for field in ("screen", "frame", "pixels", "thumbnail"):
        assert (field, pixels_of(result["content"][shown[field]["$content"]])) == (field, pixels)
    assert pixels_of(result["content"][shown["images"][0]["$content"]]) == pixels
    assert result["content"][shown["sound"]["$content"]]["data"] == sent["sound"]
    assert len(json.dumps(result["structuredContent"])) < 2000


def pixels_of(block: dict[str, Any]) -> bytes:
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    with Image.open(io.BytesIO(base64.b64decode(block["data"]))) as picture:
        assert (picture.size, picture.mode) == ((48, 32), "RGB")
        return picture.tobytes()


# --- how arguments may be written ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", agents.KINDS)
async def test_a_null_for_a_left_out_argument_and_a_number_in_a_string_are_taken(
    newest_front: Watched, kind: str
) -> None:
    async with connected(kind, newest_front.url("counter")) as agent:
        await agent.reset(seed="3", episode_id=None)
        assert (await agent.play("step", amount="5", remark=None))["observation"]["value"] == 8
    async with connected(kind, newest_front.url("toolbox")) as agent:
        await agent.reset(seed=None)
        assert (await agent.play("measure", width="2", height="3.5"))["observation"]["result"]["area"] == 7.0
        assert (await agent.call("picture", number=None))["content"][0]["type"] == "image"


@pytest.mark.parametrize("kind", agents.KINDS)
async def test_arguments_that_do_not_fit_are_explained_and_the_environment_is_not_touched(
    newest_front: Watched, kind: str
) -> None:
    async with connected(kind, newest_front.url("counter")) as agent:
        await agent.reset()
        for wrong in ({}, {"amount": 11}, {"amount": "many"}, {"amount": 1, "speed": 2}):
            error = await agent.fail("step", **wrong)
            assert error["code"] == "INVALID_ARGUMENTS"
            assert '{"amount": 1}' in error["cause"], "an example that would pass"
        with pytest.raises(agents.Refused, match="There is no tool 'stap'. Did you mean step") as refused:
            await agent.call("stap", amount=1)
        assert (await agent.play("state"))["state"]["step_count"] == 0
    assert refused.value.code == -32602


# --- revisions -------------------------------------------------------------------------------------------------------


async def test_every_revision_is_spoken_and_every_message_is_valid_in_it(newest: Arcade) -> None:
    """The witness of `watching` judges all messages of this whole folder; here it must have seen each revision."""
    with watching(newest.spec("counter")) as watched:
        revisions = []
        for kind in ALL_REVISIONS:
            async with connected(kind, watched.url("counter")) as agent:
                await agent.tools()
                await agent.reset(seed=1)
                await agent.play("step", amount=1)
                await agent.fail("step", amount=99)
                revisions.append(agent.revision)
        seen = watched.witness.seen
    assert revisions == ["2026-07-28", "2025-11-25", "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]
    assert all(seen[revision, "tools/call"] >= 3 and seen[revision, "tools/list"] >= 1 for revision in revisions)
    assert seen["2026-07-28", "server/discover"] == 1
    assert [seen[revision, "initialize"] for revision in revisions[3:]] == [2, 1, 1]


# --- other servers ---------------------------------------------------------------------------------------------------


async def test_the_environment_that_openenv_init_generates_is_played_by_every_client(generated: servers.Server) -> None:
    async with wire.session(generated.base_url) as session:
        replies = [await session.ask("reset"), *[await session.ask("step", {"message": text}) for text in ("hi", "there")]]
    expected = [(reply["data"]["observation"], reply["data"]["reward"], reply["data"]["done"]) for reply in replies]
    with watching(f"made={generated.base_url}") as watched:
        for kind in agents.KINDS:
            async with connected(kind, watched.url("made", session="one")) as agent:  # it has room for one
                results = [await agent.reset(), *[await agent.play("step", message=text) for text in ("hi", "there")]]
            assert [(result["observation"], result["reward"], result["done"]) for result in results] == expected


async def test_variants_without_a_discriminator_are_told_apart_by_their_fields(newest: Arcade) -> None:
    with watching(newest.spec("plain_shapes")) as watched:
        async with connected(agents.MCP_2_AUTO, watched.url("plain_shapes")) as agent:
            assert [name for name in await agent.tools() if name.startswith("step")] == ["step_paint", "step_erase"]
            await agent.reset()
            assert (await agent.play("step_paint", colour="red"))["observation"]["shapes"] == ["paint red"]
            assert (await agent.play("step_erase", count=1))["observation"]["shapes"] == []
