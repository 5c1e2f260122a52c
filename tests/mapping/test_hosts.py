"""The converters of real frameworks, in an environment of their own, accept every tool: none falls back, none hides a list."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit import catalog, venvs
from testkit.json_schemas import TREE
from testkit.toolsets import made_of, recorded

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.options import Exposure, MappingOptions
from openenv_gateway.mapping.toolset import Handles

pytestmark = pytest.mark.real

EXPOSURES: tuple[Exposure, ...] = ("full", "agent")

EVERYTHING: JsonObject = {
    "type": "object",
    "properties": {
        "number": {"enum": [1, 2, 3]},
        "flag": {"const": True},
        "nothing": {"type": "null"},
        "half": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
        "set": {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        "tree": {"$ref": "#/$defs/Tree"},
        "anything": {},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "list": {"type": "array"},
        "square": {"type": "string", "pattern": "^[a-h][1-8]$"},
        "mixed": {"enum": ["a", 1, None, True, 0.5]},
        "loose": {"type": ["string", "integer", "null"], "default": "q"},
        "form": {"oneOf": [{"type": "object", "properties": {"a": {"const": "x"}}}, {"type": "string"}]},
        "_private": {"type": "string"},
        "$id": {"type": "string"},
        "a.b": {"type": "string"},
    },
    "required": ["tree", "a.b"],
    "$defs": {"Tree": TREE},
}


Verdicts = dict[str, dict[str, str]]

STRICT = {"openai strict schema": "accepted", "openai function tool": "strict", "gemini": "accepted"}
LOOSE = {**STRICT, "openai function tool": "accepted"}
"""On a tool without arguments: OpenAI's converter wants `additionalProperties: false` there, which others refuse."""


@pytest.fixture(scope="module")
def verdicts(venv_python: Callable[[str], Path]) -> Verdicts:
    """What every converter makes of every tool below: one run, since importing the frameworks takes long."""
    tools = [tool for ways in _recorded_tools().values() for tool in ways]
    raw = [{"name": f"raw-{env}", "inputSchema": catalog.description(env).action} for env in catalog.described()]
    everything = {**made_of(EVERYTHING).advertised(Handles.REQUIRED)[1], "name": "everything"}
    script = Path(__file__).with_name("convert_for_hosts.py")
    ran = subprocess.run(
        [venv_python(venvs.HOST_CONVERTERS), script],
        input=json.dumps([*tools, *raw, everything]),
        text=True,
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: Verdicts = json.loads(ran.stdout)
    return found


def _recorded_tools() -> dict[Handles, list[JsonObject]]:
    """Every tool of every recorded environment in both exposures, under names that say whose and which it is."""
    return {
        handles: [
            {**tool, "name": f"{env}-{exposure}-{handles.value}-{tool['name']}"}
            for env in catalog.described()
            for exposure in EXPOSURES
            for tool in recorded(env, MappingOptions(exposure=exposure)).advertised(handles)
        ]
        for handles in Handles
    }


@pytest.mark.parametrize("handles", list(Handles))
def test_every_tool_of_every_recorded_environment_converts_strictly(verdicts: Verdicts, handles: Handles) -> None:
    tools = _recorded_tools()[handles]
    wanted = {tool["name"]: STRICT if tool["inputSchema"]["properties"] else LOOSE for tool in tools}
    assert {tool["name"]: verdicts[tool["name"]] for tool in tools} == wanted


def test_a_schema_with_every_keyword_converts_strictly(verdicts: Verdicts) -> None:
    assert verdicts["everything"] == STRICT


def test_no_recorded_schema_converts_as_served_which_is_why_they_are_rewritten(verdicts: Verdicts) -> None:
    for env in catalog.described():
        assert "additionalProperties" in verdicts[f"raw-{env}"]["openai strict schema"]
        assert verdicts[f"raw-{env}"]["gemini"] != "accepted"
