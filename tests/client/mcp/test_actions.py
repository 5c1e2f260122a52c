from __future__ import annotations

from typing import Any

import pytest

from openenv_client.errors import InvalidArguments
from openenv_client.mcp.actions import Call, Toolbox
from openenv_client.results import Tool

HANDLE = {"session_id": {"type": "string"}}


def tool(name: str, required: tuple[str, ...] = (), handle: dict[str, Any] | None = None, **properties: Any) -> Tool:
    given = HANDLE if handle is None else handle
    needed = {"required": [*required, *given]}
    return Tool(name, "", {"type": "object", "properties": {**properties, **given}, **needed})


SHAPES = Toolbox([
    tool("reset"), tool("step_circle", ("radius",), radius={}), tool("step_box", ("width", "height"), width={}, height={}),
    tool("step_finish", remark={}), tool("state"),
])  # fmt: skip
FIELDS = Toolbox([tool("step_paint", ("colour",), colour={}), tool("step_erase", ("count",), count={}), tool("state")])
TOOLS = Toolbox([tool("reset"), tool("say", ("text",), text={}), tool("step_up"), tool("state")])


def test_a_plain_action_is_the_arguments_of_step_whatever_it_looks_like() -> None:
    toolbox = Toolbox([tool("reset"), tool("step", type={}), tool("state")])
    for action in ({"move": "e4"}, {}, {"type": "call_tool", "tool_name": "x"}):
        assert toolbox.call_of(action) == Call("step", action)


@pytest.mark.parametrize(
    ("toolbox", "action", "name"),
    [
        (SHAPES, {"kind": "circle", "radius": 2}, "step_circle"),
        (SHAPES, {"kind": "finish"}, "step_finish"),
        (SHAPES, {"kind": "finish", "remark": "circle"}, "step_finish"),
        (SHAPES, {"width": 2, "height": 1}, "step_box"),
        (SHAPES, {"kind": "a name that the gateway had to shorten", "radius": 2}, "step_circle"),
        (FIELDS, {"colour": "red"}, "step_paint"),
        (FIELDS, {"count": 1}, "step_erase"),
        (FIELDS, {"count": 1, "metadata": {}}, "step_erase"),
    ],
)
def test_one_of_several_kinds_is_found_by_the_field_that_names_it_or_else_by_its_fields(
    toolbox: Toolbox, action: dict[str, Any], name: str
) -> None:
    assert toolbox.call_of(action) == Call(name, action)


@pytest.mark.parametrize(
    ("toolbox", "action", "words"),
    [
        (FIELDS, {"colour": "red", "count": 1}, "more than one tool: step_paint, step_erase"),
        (FIELDS, {"size": 1}, "fits no tool. Tools: step_paint, step_erase, state"),
        (SHAPES, {"kind": "star", "points": 5}, "fits no tool"),
        (TOOLS, {"move": "e4", "to": 1}, "fits no tool"),
        (Toolbox([]), {"move": "e4"}, "fits no tool. Tools: none"),
    ],
)
def test_an_action_that_is_no_ones_or_several_ones_is_refused_with_the_tools_there_are(
    toolbox: Toolbox, action: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidArguments) as refused:
        toolbox.call_of(action)
    assert words in str(refused.value) and refused.value.code == "INVALID_ARGUMENTS"


def test_a_call_of_a_tool_is_that_tool() -> None:
    assert TOOLS.call_of({"type": "call_tool", "tool_name": "say", "arguments": {"text": "hi"}}) == Call("say", {"text": "hi"})
    assert TOOLS.call_of({"type": "call_tool", "tool_name": "say", "arguments": None}) == Call("say", {})


def test_the_session_is_the_argument_that_every_tool_takes_and_is_not_shown() -> None:
    assert TOOLS.handle == "session_id"
    assert TOOLS.tools[1].input_schema == {"type": "object", "properties": {"text": {}}, "required": ["text"]}
    assert TOOLS.tools[0].input_schema == {"type": "object", "properties": {}}
    assert [each.name for each in TOOLS.own] == ["say", "step_up"]


def test_an_action_may_have_an_argument_of_that_name_itself() -> None:
    other = {"openenv_session_id": {"type": "string"}}
    toolbox = Toolbox([tool("step", session_id={}, handle=other), tool("state", handle=other)])
    assert toolbox.handle == "openenv_session_id"
    assert toolbox.tools[0].input_schema["properties"] == {"session_id": {}}


def test_tools_that_take_no_session_are_shown_as_they_are() -> None:
    plain = Tool("step", "", {"type": "object"})
    assert Toolbox([plain]).tools == (plain,) and Toolbox([plain]).handle is None
