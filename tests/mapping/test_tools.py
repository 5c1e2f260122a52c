"""Which tools an environment gets, what they are called, and what a model reads about them."""

from __future__ import annotations

import pytest
from testkit import catalog
from testkit.toolsets import listed_tools, recorded

from openenv_client.frames import JsonObject
from openenv_gateway.errors import UnusableSchema
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.tools import ToolKind, ToolSet, build_tools, is_mcp_environment

AGENT = MappingOptions(exposure="agent")
MCP = catalog.description("echo_env")
MCP_ENVIRONMENTS = {"coding_tools_env", "echo_env", "finqa_env", "jupyter_env", "terminus_env"}


def names(tools: ToolSet) -> list[str]:
    return [tool.name for tool in tools.tools]


def with_tools(*items: JsonObject, options: MappingOptions | None = None) -> ToolSet:
    return build_tools(MCP, options or MappingOptions(), items)


def test_recorded_environments_are_told_apart_by_their_actions() -> None:
    assert {env for env in catalog.described() if is_mcp_environment(catalog.description(env))} == MCP_ENVIRONMENTS


def test_a_plain_environment_gets_reset_step_and_state() -> None:
    tools = recorded("chess_env")
    assert [(tool.name, tool.kind) for tool in tools.tools] == [
        ("reset", ToolKind.RESET),
        ("step", ToolKind.STEP),
        ("state", ToolKind.STATE),
    ]


def test_an_agent_without_control_of_the_simulation_gets_observe_instead() -> None:
    assert names(recorded("chess_env", AGENT)) == ["step", "observe"]
    assert names(recorded("echo_env", AGENT)) == ["echo_message", "echo_with_length", "observe"]


@pytest.mark.parametrize("env", sorted(MCP_ENVIRONMENTS))
def test_an_mcp_environment_gets_its_own_tools_under_their_own_names(env: str) -> None:
    tools = recorded(env)
    own = [tool["name"] for tool in listed_tools(env)]
    assert names(tools) == ["reset", *own, "state"]
    assert [tool.remote_name for tool in tools.tools if tool.kind is ToolKind.CALL] == own


def test_odd_long_and_colliding_names_are_shortened_with_a_stable_hash() -> None:
    items = [{"name": name} for name in ("observe", "a.b", "a_b", "x" * 90, "x" * 91)]
    tools = with_tools(*items, options=MappingOptions(exposure="agent", max_tool_name=20))
    own = [tool for tool in tools.tools if tool.kind is ToolKind.CALL]
    assert [tool.remote_name for tool in own] == [item["name"] for item in items]
    assert own[2].name == "a_b"
    assert len({tool.name for tool in tools.tools}) == 6
    assert all(len(tool.name) <= 20 for tool in own)
    again = with_tools(*reversed(items), options=MappingOptions(exposure="agent", max_tool_name=20))
    assert {(tool.remote_name, tool.name) for tool in own} <= {(tool.remote_name, tool.name) for tool in again.tools}


def test_both_spellings_of_the_schema_are_read_and_a_tool_without_one_takes_anything() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tools = with_tools({"name": "one", "input_schema": schema}, {"name": "two", "inputSchema": schema}, {"name": "three"})
    assert list(tools.find("one").input_schema["properties"]) == ["a"]
    assert list(tools.find("two").input_schema["properties"]) == ["a"]
    assert list(tools.find("three").input_schema["properties"]) == ["options_json"]


@pytest.mark.parametrize("item", [{}, {"name": ""}, {"name": 5}])
def test_a_tool_without_a_name_is_refused(item: JsonObject) -> None:
    with pytest.raises(UnusableSchema, match="lists a tool without a name"):
        with_tools(item)


def test_an_unusable_schema_names_its_tool() -> None:
    with pytest.raises(UnusableSchema, match="the environment's tool 'look'"):
        with_tools({"name": "look", "input_schema": {"$ref": "https://example.org/x"}})


def test_annotations_say_what_reads_and_what_starts_anew() -> None:
    by_name = {tool.name: tool.annotations for tool in (*recorded("chess_env").tools, *recorded("chess_env", AGENT).tools)}
    assert by_name["state"]["readOnlyHint"] is by_name["observe"]["readOnlyHint"] is True
    assert by_name["step"] == {"readOnlyHint": False, "idempotentHint": False}
    assert by_name["reset"] == {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}
