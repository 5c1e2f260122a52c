"""How to play an environment, in words for a model: the text of the prompt `play`. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from openenv_client.description import Description
from openenv_gateway.mapping.docstrings import split_docstring
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.toolset import Handles, Tool, ToolSet


@dataclass(frozen=True, slots=True)
class Guide:
    """What the text is about. `uris`: what can be read, each with a word on what it is."""

    name: str
    description: Description
    options: MappingOptions
    tools: ToolSet
    handles: Handles
    uris: Sequence[tuple[str, str]] = ()

    def text(self, goal: str | None = None, tool: Tool | None = None) -> str:
        """The whole text. `goal`: what the player shall achieve; `tool` is explained in full."""
        parts = [
            self._about(),
            f"Its tools:\n{self._tools()}",
            self._rules(),
            None if not self.uris else "More to read:\n" + "\n".join(f"- {uri}: {what}" for uri, what in self.uris),
            None if tool is None else _in_full(tool),
            None if goal is None else f"Your goal: {goal}",
        ]
        return "\n\n".join(part for part in parts if part is not None)

    def _about(self) -> str:
        said = self.description.summary
        return f"Play the environment {self.name} by calling its tools." + (f"\n\n{said.strip()}" if said else "")

    def _tools(self) -> str:
        return "\n".join(f"- {tool.name}: {_first_sentence(tool.description)}" for tool in self.tools.tools)

    def _rules(self) -> str:
        full = self.options.exposure == "full"
        opener = "reset" if full else "observe"
        reward = ", reward (what the action earned)" if self.options.reward == "visible" else ""
        rules = [
            f"Begin with {opener}: it shows the first observation.",
            f"Every further call acts on the same episode and returns its observation{reward} and done.",
            self._handle_rule(opener),
            f"When done is true the episode is over: {'call reset to play another' if full else 'stop'}.",
            "A call that failed says why and what to do next; arguments that do not fit change nothing.",
            '{"$cut": …} in a result stands for something large: read the URI beside it if you need it.',
        ]
        return "How it goes:\n" + "\n".join(f"{number}. {rule}" for number, rule in enumerate(filter(None, rules), 1))

    def _handle_rule(self, opener: str) -> str | None:
        if self.handles is not Handles.REQUIRED:
            return None
        return f"Pass the session_id that {opener} returned to every later call, as {self.tools.handle_argument}."


def _first_sentence(description: str) -> str:
    paragraph = " ".join(split_docstring(description)[0].split("\n\n", 1)[0].split())
    end = paragraph.find(". ")
    return paragraph if end < 0 else paragraph[: end + 1]


def _in_full(tool: Tool) -> str:
    schema = json.dumps(tool.input_schema, ensure_ascii=False, indent=1)
    return f"The tool {tool.name} in full:\n{tool.description}\n\nIts arguments, as a JSON Schema:\n{schema}"
