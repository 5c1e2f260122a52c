"""What a model reads about the tools: what the environment is, what a tool does, when the episode is over. Pure."""

from __future__ import annotations

from openenv_client.description import Description
from openenv_gateway.mapping.docstrings import split_docstring
from openenv_gateway.mapping.options import MappingOptions


class Prose:
    """The descriptions for one environment's tools."""

    def __init__(self, description: Description, options: MappingOptions) -> None:
        self._name = description.name or "the environment"
        self._summary = _summary(description)
        self._options = options

    def reset(self) -> str:
        does = f"Starts a new episode in {self._name} and returns its first observation."
        return _paragraphs(f"{does} The session's present episode, if any, ends.", self._summary)

    def step(self, docstring: str | None) -> str:
        said = _prose(docstring)
        summary = None if said and self._summary and self._summary in said else self._summary
        return _paragraphs(f"Takes one action in {self._name}.", said, summary, self._outcome())

    def call(self, said: str | None) -> str:
        return _paragraphs(said, f"This is an action in {self._name}.", self._outcome())

    def state(self) -> str:
        return f"Shows the state of the episode in {self._name}, as the environment itself keeps it. Changes nothing."

    def observe(self) -> str:
        does = f"Shows the latest observation in {self._name} again, without asking the environment. Changes nothing."
        return _paragraphs(f"{does} Before the first action it shows the initial observation.", self._summary)

    def _outcome(self) -> str:
        reward = ", the reward" if self._options.reward == "visible" else ""
        end = "call reset to start the next one" if self._options.exposure == "full" else "no further action is possible"
        return f"Returns the observation{reward} and done. When done is true the episode is over: {end}."


def _summary(description: Description) -> str | None:
    """The environment's summary, unless it is only its name again, as servers say by default."""
    summary = (description.summary or "").strip()
    name = (description.name or "").strip().lower()
    return None if summary.lower() in ("", name, f"{name} environment") else summary


def _prose(docstring: str | None) -> str | None:
    return split_docstring(docstring)[0] if docstring else None


def _paragraphs(*parts: str | None) -> str:
    texts = [part.strip() for part in parts if part and part.strip()]
    return "\n\n".join(text if text[-1] in ".!?:" else f"{text}." for text in texts)
