"""Our environments on every version of the real framework: what it makes of them on the wire, seen without our client."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from PIL import Image
from testkit import venvs, wire
from testkit.arcade import PACKAGES, Arcade

import openenv_gateway_schemas as schemas

pytestmark = pytest.mark.real

ENVIRONMENTS = ("counter", "shapes", "toolbox", "gallery", "faulty")

REPLY = Draft202012Validator({"$ref": "#/$defs/reply", "$defs": schemas.load("ws_frame")["$defs"]})


class Running:
    """Where an environment is served, which one it is, and by which package."""

    def __init__(self, environment: str, package: str, base_url: str) -> None:
        self.environment, self.package, self.base_url = environment, package, base_url

    @property
    def tells_metadata(self) -> bool:
        """openenv repeats an observation's metadata in the frame and in the observation; openenv-core drops it."""
        return self.package == venvs.OPENENV_0_10

    def observation(self, observation: dict[str, Any], reward: float | None, done: bool, **metadata: Any) -> dict[str, Any]:
        """The frame that this version sends for an observation."""
        data: dict[str, Any] = {"observation": observation, "reward": reward, "done": done}
        if self.tells_metadata:
            data["observation"] = {"metadata": metadata, **observation}
        if self.tells_metadata and metadata:
            data["metadata"] = metadata
        return {"type": "observation", "data": data}

    async def play(self, *requests: tuple[str, dict[str, Any] | None]) -> list[Any]:
        """The replies to some requests in a session of their own, each of them a valid frame."""
        async with wire.session(self.base_url) as session:
            replies = [await session.ask(kind, data) for kind, data in requests]
        for reply in replies:
            REPLY.validate(reply)
        return replies


@pytest.fixture(
    scope="module",
    params=[(environment, package) for environment in ENVIRONMENTS for package in PACKAGES],
    ids=lambda param: "-on-".join(param),
)
def running(request: pytest.FixtureRequest, arcades: Callable[[str], Arcade]) -> Running:
    environment, package = request.param
    with_room_for_two = {"counter": "duo"}.get(environment, environment)
    return Running(environment, package, arcades(package).url(with_room_for_two))


def only(*environments: str) -> pytest.MarkDecorator:
    """Run the test with servers of these environments alone."""
    params = [(environment, package) for environment in environments for package in PACKAGES]
    return pytest.mark.parametrize("running", params, indirect=True, ids="-on-".join)


def test_it_is_healthy_and_describes_itself(running: Running) -> None:
    with httpx.Client(base_url=running.base_url, trust_env=False, timeout=10) as http:
        health, schema, metadata = (http.get(path).json() for path in ("/health", "/schema", "/metadata"))
    assert health == {"status": "healthy"}
    assert schema.keys() - {"reset_observation"} == {"action", "observation", "state"}
    assert ("reset_observation" in schema) == running.tells_metadata
    for part in schema.values():
        Draft202012Validator.check_schema(part)
    assert metadata["name"] == f"{running.environment.title()}Environment"


async def test_reset_and_state_answer_with_their_frames_and_the_episode_that_was_asked_for(running: Running) -> None:
    reset, state = await running.play(("reset", {"seed": 1, "episode_id": "ep-1"}), ("state", None))
    assert (reset["type"], reset["data"]["done"]) == ("observation", False)
    assert (state["type"], state["data"]["episode_id"], state["data"]["step_count"]) == ("state", "ep-1", 0)


async def test_an_action_that_does_not_fit_is_refused_with_its_fields_and_the_session_goes_on(running: Running) -> None:
    reset, refused, state = await running.play(("reset", None), ("step", {"zzz": 1}), ("state", None))
    assert (refused["type"], refused["data"]["code"]) == ("error", "VALIDATION_ERROR")
    assert refused["data"]["errors"]
    assert state["data"]["step_count"] == 0


@only("counter")
async def test_the_counter_counts_to_its_target_with_the_rewards_of_its_rule(running: Running) -> None:
    start, middle, end, state = await running.play(
        ("reset", {"label": "blue", "target": 9, "seed": 3}), ("step", {"amount": 4}), ("step", {"amount": 2}), ("state", None)
    )
    session = start["data"]["observation"]["session"]
    assert session > 0
    assert start == running.observation(
        {"value": 3, "target": 9, "board": "blue: 3=3 of 9", "session": session}, None, False
    )
    assert middle == running.observation(
        {"value": 7, "target": 9, "board": "blue: 3+4=7 of 9", "session": session}, 0.4, False, steps=1
    )
    assert end == running.observation(
        {"value": 9, "target": 9, "board": "blue: 3+4+2=9 of 9", "session": session}, 1.2, True, steps=2
    )
    assert state["data"] == {"episode_id": None, "step_count": 2, "value": 9, "target": 9, "label": "blue", "resets": 1}


@only("counter")
async def test_two_sessions_of_one_server_keep_their_own_boards(running: Running) -> None:
    async with wire.session(running.base_url) as red, wire.session(running.base_url) as blue:
        await red.ask("reset", {"label": "red"})
        await blue.ask("reset", {"label": "blue"})
        boards = []
        for amount in (1, 2):
            boards += [(await side.ask("step", {"amount": amount}))["data"]["observation"]["board"] for side in (red, blue)]
    assert boards == ["red: 0+1=1 of 20", "blue: 0+1=1 of 20", "red: 0+1+2=3 of 20", "blue: 0+1+2=3 of 20"]


@only("counter")
async def test_a_session_beyond_the_capacity_is_accepted_told_so_and_closed(running: Running) -> None:
    async with wire.session(running.base_url) as first, wire.session(running.base_url) as second:
        await first.ask("reset")
        await second.ask("reset")
        async with wire.session(running.base_url) as third:
            refusal = await third.receive()
            await asyncio.wait_for(third.socket.wait_closed(), 10)
    REPLY.validate(refusal)
    assert refusal["data"] | {"message": ""} == {
        "code": "CAPACITY_REACHED", "active_sessions": 2, "max_sessions": 2, "message": "",
    }  # fmt: skip
    assert third.socket.close_code == 1000


@only("shapes")
async def test_a_union_action_takes_each_of_its_variants(running: Running) -> None:
    rectangle = {"kind": "rectangle", "width": 2, "height": 3}
    _, drawn, finished = await running.play(("reset", None), ("step", rectangle), ("step", {"kind": "finish"}))
    assert drawn == running.observation({"shapes": ["rectangle 2x3"], "area": 6.0}, 6.0, False)
    assert finished == running.observation({"shapes": ["rectangle 2x3"], "area": 6.0}, 0.0, True)


@only("shapes")
def test_a_union_action_is_published_as_one_of_several_objects_told_apart_by_a_field(running: Running) -> None:
    action = httpx.get(f"{running.base_url}/schema", trust_env=False, timeout=10).json()["action"]
    assert action["discriminator"]["propertyName"] == "kind"
    assert [variant["$ref"] for variant in action["oneOf"]] == [
        "#/$defs/DrawCircle", "#/$defs/DrawRectangle", "#/$defs/Finish",
    ]  # fmt: skip
    assert "type" not in action


def call(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "step", {"type": "call_tool", "tool_name": tool, "arguments": arguments}


@only("toolbox")
async def test_an_mcp_environment_lists_its_tools_as_a_step(running: Running) -> None:
    (reply,) = await running.play(("step", {"type": "list_tools"}))
    tools = reply["data"]["observation"]["tools"]
    assert [tool["name"] for tool in tools] == ["say", "note", "picture", "sound", "measure", "fail", "wait", "finish"]
    assert tools[0]["description"] == "Say a text; it comes back."
    assert tools[4]["input_schema"]["required"] == ["width", "height"]


@only("toolbox")
async def test_tool_results_come_back_as_content_with_the_steps_reward(running: Running) -> None:
    calls = [call("say", text="hi"), call("measure", width=2, height=3), call("picture"), call("sound"), call("finish")]
    replies = await running.play(("reset", None), *calls)
    results = [reply["data"]["observation"]["result"] for reply in replies[1:]]
    assert [reply["data"]["reward"] for reply in replies] == [0.0, 0.1, 0.1, 0.1, 0.1, 0.1]
    assert [reply["data"]["done"] for reply in replies] == [False, False, False, False, False, True]
    assert results[0]["content"][0]["text"] == "hi" and results[0]["structured_content"] == {"result": "hi"}
    assert results[1]["structured_content"] == {"area": 6.0, "outline": 10.0}
    assert base64.b64decode(results[2]["content"][0]["data"]).startswith(b"\x89PNG")
    assert base64.b64decode(results[3]["content"][0]["data"]).startswith(b"RIFF")


@only("toolbox")
async def test_the_mime_type_is_in_camel_case_with_fastmcp_3_and_in_snake_case_with_fastmcp_4(running: Running) -> None:
    (reply,) = await running.play(call("picture"))
    block = reply["data"]["observation"]["result"]["content"][0]
    spelling = "mimeType" if running.package == venvs.OPENENV_0_10 else "mime_type"
    assert {key: value for key, value in block.items() if "mime" in key.lower()} == {spelling: "image/png"}


@only("toolbox")
async def test_failing_tools_are_observations_with_an_error_type(running: Running) -> None:
    replies = await running.play(call("fail", reason="the lid is stuck"), call("nope"), call("say"))
    errors = [reply["data"]["observation"]["error"] for reply in replies]
    assert errors[0] == {"error_type": "execution_error", "message": "the lid is stuck"}
    assert errors[1] == {"error_type": "tool_not_found", "message": "Unknown tool: 'nope'"}
    assert errors[2]["error_type"] == "invalid_args"


@only("gallery")
async def test_the_gallery_shows_the_same_picture_in_every_form(running: Running, tmp_path: Path) -> None:
    _, reply = await running.play(("reset", None), ("step", {"number": 3, "size": 2}))
    seen = reply["data"]["observation"]
    assert seen["screen_shape"] == [16, 24, 3]
    assert seen["screen"] == [value for row in seen["frame"] for cell in row for value in cell]
    file = tmp_path / "picture.png"
    file.write_bytes(base64.b64decode(seen["pixels"]))
    with Image.open(file) as picture:
        assert (picture.format, picture.size, picture.mode) == ("PNG", (24, 16), "RGB")
        assert list(picture.tobytes()) == seen["screen"]
    assert seen["thumbnail"] == f"data:image/png;base64,{seen['pixels']}" and seen["images"][0] == seen["pixels"]


@only("faulty")
async def test_a_step_that_raises_is_the_bare_text_of_its_exception_and_the_session_goes_on(running: Running) -> None:
    replies = await running.play(("step", {"do": "key_error"}), ("step", {"do": "bare_text"}), ("step", {"do": "nothing"}))
    assert [reply["data"].get("message") for reply in replies] == ["'nowhere'", "99", None]
    assert [reply["data"].get("code") for reply in replies] == ["EXECUTION_ERROR", "EXECUTION_ERROR", None]


@only("faulty")
async def test_not_a_number_goes_over_the_wire_as_null(running: Running) -> None:
    (reply,) = await running.play(("step", {"do": "not_a_number"}))
    assert reply == running.observation({"did": "not_a_number", "value": None}, None, False)
