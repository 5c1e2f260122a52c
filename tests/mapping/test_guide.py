"""How to play, in words."""

from __future__ import annotations

import dataclasses

import pytest
from testkit import catalog, toolsets

from openenv_client.description import Description
from openenv_gateway.mapping.guide import Guide
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.tools import build_tools
from openenv_gateway.mapping.toolset import Handles

ACTION = {"type": "object", "properties": {"move": {"type": "string"}}, "required": ["move"]}


def guide(
    options: MappingOptions | None = None, handles: Handles = Handles.NONE, summary: str | None = "A game. For two."
) -> Guide:
    described = Description(action=ACTION, observation={}, name="game", summary=summary)
    options = options or MappingOptions()
    return Guide("game", described, options, build_tools(described, options), handles)


def test_the_whole_text_of_a_small_game() -> None:
    assert guide().text() == (
        "Play the environment game by calling its tools.\n"
        "\n"
        "A game. For two.\n"
        "\n"
        "Its tools:\n"
        "- reset: Starts a new episode in game and returns its first observation.\n"
        "- step: Takes one action in game.\n"
        "- state: Shows the state of the episode in game, as the environment itself keeps it.\n"
        "\n"
        "How it goes:\n"
        "1. Begin with reset: it shows the first observation.\n"
        "2. Every further call acts on the same episode and returns its observation, reward (what the action earned) "
        "and done.\n"
        "3. When done is true the episode is over: call reset to play another.\n"
        "4. A call that failed says why and what to do next; arguments that do not fit change nothing.\n"
        '5. {"$cut": …} in a result stands for something large: read the URI beside it if you need it.'
    )


def test_an_agent_that_may_not_reset_is_not_told_to() -> None:
    text = guide(MappingOptions(exposure="agent", reward="hidden")).text()
    assert "reset" not in text and "reward" not in text
    assert "1. Begin with observe" in text
    assert "the episode is over: stop." in text


def test_a_handle_is_spoken_of_under_the_name_that_the_tools_give_it() -> None:
    required = guide(handles=Handles.REQUIRED)
    assert "Pass the session_id that reset returned to every later call, as session_id." in required.text()
    assert "session_id" not in guide(handles=Handles.OPTIONAL).text()


def test_a_goal_a_tool_and_what_to_read_are_told_where_there_are_any() -> None:
    described = guide(summary=None)
    readable = dataclasses.replace(described, uris=[("openenv://game/readme", "About it.")])
    text = readable.text("Win.", described.tools.find("step"))
    assert "More to read:\n- openenv://game/readme: About it.\n" in text
    assert "The tool step in full:\nTakes one action in game." in text
    assert '"move"' in text
    assert text.endswith("Your goal: Win.")
    assert text.startswith("Play the environment game by calling its tools.\n\nIts tools:")


@pytest.mark.parametrize("env", catalog.described())
def test_every_tool_of_a_recorded_environment_has_one_line(env: str) -> None:
    tools = toolsets.recorded(env)
    text = Guide(env, catalog.description(env), MappingOptions(), tools, Handles.REQUIRED).text()
    lines = text.split("Its tools:\n")[1].split("\n\nHow it goes:")[0].splitlines()
    assert [line.split(":")[0] for line in lines] == [f"- {tool.name}" for tool in tools.tools]
    assert all(len(line) > len(tool.name) + 5 for line, tool in zip(lines, tools.tools, strict=True))
