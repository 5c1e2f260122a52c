"""What a model reads about the tools."""

from __future__ import annotations

import pytest
from testkit import catalog
from testkit.toolsets import made_of

from openenv_client.description import Description
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.tools import Handles, build_tools

AGENT = MappingOptions(exposure="agent")
MCP = catalog.description("echo_env")


def test_what_an_agent_reads_says_what_the_environment_is_and_when_an_episode_is_over() -> None:
    summary = "Chess against a weak opponent."
    description = Description(action=catalog.description("chess_env").action, observation={}, name="Chess", summary=summary)
    tools = build_tools(description, MappingOptions())
    for tool in tools.tools:
        assert "in Chess" in tool.description
        assert tool.description.count(summary) == (0 if tool.name == "state" else 1)
    step = tools.find("step").description
    assert "Action for Chess environment." in step
    assert step.endswith("When done is true the episode is over: call reset to start the next one.")
    agent = build_tools(description, AGENT).find("step").description
    assert agent.endswith("the episode is over: no further action is possible.")
    assert build_tools(description, AGENT).find("observe").description.endswith(summary)


def test_a_summary_that_the_action_tells_already_is_not_told_twice() -> None:
    action = {"type": "object", "properties": {}, "description": "Put an X. Noughts and crosses. You begin."}
    step = made_of(action, name="Game", summary="Noughts and crosses.").find("step").description
    assert step.count("Noughts and crosses.") == 1


def test_the_handle_says_how_long_it_is_good_for() -> None:
    description = Description(action={"type": "object"}, observation={})
    tools = build_tools(description, MappingOptions(), handle_life="It ends at noon.")
    for tool in (*tools.advertised(Handles.OPTIONAL), *tools.advertised(Handles.REQUIRED)):
        assert tool["inputSchema"]["properties"]["session_id"]["description"].endswith(" It ends at noon.")


@pytest.mark.parametrize("summary", ["Chess environment", " ", None, "chess"])
def test_a_summary_that_is_only_the_name_again_is_not_repeated(summary: str | None) -> None:
    assert "in Chess and" in made_of({"type": "object"}, name="Chess", summary=summary).find("reset").description


def test_an_environment_without_a_name_or_words_is_still_described() -> None:
    tools = made_of({"type": "object", "properties": {}})
    assert tools.find("step").description.startswith("Takes one action in the environment.\n\nReturns the observation")
    nameless = Description(action=MCP.action, observation={})
    look = build_tools(nameless, MappingOptions(), [{"name": "look", "description": None}]).find("look")
    assert look.description.startswith("This is an action in the environment.\n\nReturns")
