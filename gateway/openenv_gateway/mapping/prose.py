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
        return (
            f"Starts a new episode in {self._where()} and returns its first observation. "
            "The session's present episode, if any, ends."
        )

    def step(self, docstring: str | None) -> str:
        return _paragraphs(f"Takes one action in {self._where()}", _prose(docstring), self._outcome())

    def call(self, said: str | None) -> str:
        return _paragraphs(said, f"This is an action in {self._where()}", self._outcome())

    def state(self) -> str:
        return f"Shows the state of the episode in {self._where()}, as the environment itself keeps it. Changes nothing."

    def observe(self) -> str:
        return (
            f"Shows the latest observation in {self._where()} again, without asking the environment. Changes nothing. "
            "Before the first action it shows the initial observation."
        )

    def _where(self) -> str:
        return f"{self._name} ({self._summary.rstrip('.')})" if self._summary else self._name

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
