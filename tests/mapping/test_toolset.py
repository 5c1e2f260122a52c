"""How an environment's tools are listed and found, and how calls name their lane."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import Tool as McpTool
from testkit import catalog
from testkit.toolsets import made_of, recorded

from openenv_client.frames import JsonObject
from openenv_gateway.errors import InvalidArguments, UnknownTool
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.tools import Handles, ToolKind, ToolSet

AGENT = MappingOptions(exposure="agent")


def described(tools: ToolSet, name: str, handles: Handles) -> JsonObject:
    return next(tool for tool in tools.advertised(handles) if tool["name"] == name)


def test_an_unknown_tool_is_answered_with_the_nearest_and_all_others() -> None:
    tools = recorded("echo_env")
    assert tools.find("reset").kind is ToolKind.RESET
    with pytest.raises(UnknownTool, match=r"no tool 'echo_mesage'\. Did you mean echo_message\? Tools: reset, echo_message"):
        tools.find("echo_mesage")
    with pytest.raises(UnknownTool, match=r"no tool 'zzz'\. Tools: reset"):
        tools.find("zzz")
    with pytest.raises(UnknownTool) as caught:
        ToolSet([]).find("x" * 10_000)
    assert len(str(caught.value)) < 400
    assert str(caught.value).endswith("Tools: none")


@pytest.mark.parametrize("env", catalog.described())
@pytest.mark.parametrize("handles", list(Handles))
def test_the_list_is_valid_mcp_and_the_same_bytes_on_every_start(env: str, handles: Handles) -> None:
    listed = recorded(env).advertised(handles)
    assert json.dumps(listed) == json.dumps(recorded(env).advertised(handles))
    for tool in listed:
        model = McpTool.model_validate(tool)
        assert model.description
        assert model.title


def test_tools_take_no_handle_the_lane_being_given_otherwise() -> None:
    tools = recorded("chess_env")
    assert described(tools, "step", Handles.NONE)["inputSchema"] == tools.find("step").input_schema
    assert "session_id" not in json.dumps([tool["inputSchema"] for tool in tools.advertised(Handles.NONE)])


def test_tools_take_the_handle_if_the_agent_likes() -> None:
    for tool in recorded("chess_env").advertised(Handles.OPTIONAL):
        assert tool["inputSchema"]["properties"]["session_id"]["type"] == "string"
        assert "session_id" not in tool["inputSchema"].get("required", [])


@pytest.mark.parametrize(("options", "opener"), [(MappingOptions(), "reset"), (AGENT, "observe")])
def test_without_sessions_every_tool_needs_the_handle_but_the_one_that_gives_it(options: MappingOptions, opener: str) -> None:
    for tool in recorded("chess_env", options).advertised(Handles.REQUIRED):
        words = tool["inputSchema"]["properties"]["session_id"]["description"]
        assert f"in the result of {opener}" in words
        assert ("session_id" in tool["inputSchema"].get("required", [])) == (tool["name"] != opener)
        assert ("a new session is opened" in words) == (tool["name"] == opener)


def test_the_handle_goes_under_another_name_where_the_environment_uses_session_id_itself() -> None:
    tools = recorded("tbench2_env")
    assert tools.handle_argument == "openenv_session_id"
    properties = described(tools, "step", Handles.REQUIRED)["inputSchema"]["properties"]
    assert {"session_id", "openenv_session_id"} <= properties.keys()
    assert tools.split_handle({"session_id": "theirs", "openenv_session_id": "ours"}) == ("ours", {"session_id": "theirs"})
    both = {"type": "object", "properties": {"session_id": {"type": "string"}, "openenv_session_id": {"type": "string"}}}
    assert made_of(both).handle_argument == "openenv_gateway_session_id"


@pytest.mark.parametrize(
    ("arguments", "handle", "rest"),
    [
        (None, None, {}),
        ({"a": 1}, None, {"a": 1}),
        ({"session_id": "h", "a": 1}, "h", {"a": 1}),
        ({"session_id": " h "}, "h", {}),
        ({"session_id": None}, None, {}),
        ({"session_id": ""}, None, {}),
        ({"session_id": "  "}, None, {}),
    ],
)
def test_the_handle_is_taken_out_of_the_arguments(arguments: Any, handle: str | None, rest: JsonObject) -> None:
    assert recorded("chess_env").split_handle(arguments) == (handle, rest)


def test_a_handle_that_is_no_string_is_refused() -> None:
    with pytest.raises(InvalidArguments, match=r"session_id is not the string that an earlier result gave, but 7 \(integer\)"):
        recorded("chess_env").split_handle({"session_id": 7})
