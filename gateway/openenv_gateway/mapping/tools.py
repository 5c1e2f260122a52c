"""Which tools an environment gets. Pure.

    plain action           step
    union of actions       step_<variant> for each, the discriminator filled in
    MCP environment        its own tools under their own names
    exposure "full"        also reset and state
    exposure "agent"       also observe, and no control over the simulation
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openenv_client.description import Description
from openenv_client.frames import JsonObject
from openenv_gateway.errors import UnusableSchema
from openenv_gateway.mapping.alternatives import Alternatives
from openenv_gateway.mapping.contract import Contract
from openenv_gateway.mapping.naming import sentence_of, tool_name
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.outputs import state_output, step_output
from openenv_gateway.mapping.prose import Prose
from openenv_gateway.mapping.references import Document, Schema, read_document
from openenv_gateway.mapping.toolset import Handles, Tool, ToolKind, ToolSet
from openenv_gateway.mapping.variants import variants_of

__all__ = ["Handles", "Tool", "ToolKind", "ToolSet", "build_tools", "is_mcp_environment"]

_NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
_RESET: JsonObject = {
    "type": "object",
    "properties": {
        "seed": {
            "anyOf": [{"type": "integer"}, {"type": "null"}],
            "description": "Seed of the episode's chance, for environments that have one.",
        },
        "episode_id": {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "description": "A name for the new episode; the environment makes one up if it is left out.",
        },
    },
    "additionalProperties": True,
}
"""What reset takes where the server publishes no schema for it. Environments ignore what they do not know."""

_READS: JsonObject = {"readOnlyHint": True, "idempotentHint": True}
_ACTS: JsonObject = {"readOnlyHint": False, "idempotentHint": False}
_RESETS: JsonObject = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}
_MCP_ACTIONS = ("call_tool", "list_tools")


def is_mcp_environment(description: Description) -> bool:
    """Whether the environment's actions are calls of tools of its own, to be asked for with a `list_tools` step.

    Raises UnusableSchema if its action schema cannot be read.
    """
    document = read_document(description.action, "the action")
    return any(_is_tool_call(form.keywords.get("properties", {})) for form in Alternatives(document).of(document.root))


def build_tools(
    description: Description,
    options: MappingOptions,
    environment_tools: Sequence[JsonObject] = (),
    *,
    handle_life: str = "",
) -> ToolSet:
    """The tools for an environment, in a fixed order.

    `environment_tools` are the `observation.tools` of a `list_tools` step (`name`, `description`, `input_schema` or
    `inputSchema`), for environments of which `is_mcp_environment` is true; `handle_life` is a sentence on how long a lane's
    handle is good for. Raises UnusableSchema, naming the tool, for a schema
    that cannot be shown to hosts or checked.
    """
    return ToolSet(_Builder(description, options).build(environment_tools), handle_life)


class _Builder:
    """Collects the tools of one environment under names that are unique."""

    def __init__(self, description: Description, options: MappingOptions) -> None:
        self._description = description
        self._options = options
        self._prose = Prose(description, options)
        self._output = step_output(description.observation, options)
        self._names: set[str] = {"observe", "reset", "state", "step"}

    def build(self, environment_tools: Sequence[JsonObject]) -> Iterator[Tool]:
        full = self._options.exposure == "full"
        if full:
            yield self._reset()
        yield from self._calls(environment_tools) if is_mcp_environment(self._description) else ()
        yield from self._steps()
        yield self._state() if full else self._observe()

    def _reset(self) -> Tool:
        schema = _RESET if self._description.reset is None else self._description.reset
        document = read_document(schema, "reset")
        contract = Contract(document, document.root, noun="arguments of this environment's reset", style=self._options.schemas)
        return Tool(ToolKind.RESET, "reset", "Reset", self._prose.reset(), self._output, _RESETS, contract)

    def _state(self) -> Tool:
        return Tool(ToolKind.STATE, "state", "State", self._prose.state(), state_output(), _READS, _no_arguments())

    def _observe(self) -> Tool:
        return Tool(ToolKind.OBSERVE, "observe", "Observe", self._prose.observe(), self._output, _READS, _no_arguments())

    def _steps(self) -> Iterator[Tool]:
        document = read_document(self._description.action, "the action")
        variants, style = variants_of(document), self._options.schemas
        for variant in variants:
            if variant.fill.get("type") not in _MCP_ACTIONS:
                contract = Contract(document, variant.schema, hidden=_is_stray, fill=variant.fill, style=style)
                title, name = f"Step: {sentence_of(variant.name)}", self._name(f"step_{variant.name}")
                prose = self._prose.step(variant.description)
                yield Tool(ToolKind.VARIANT, name, title, prose, self._output, _ACTS, contract)
        if not variants and not is_mcp_environment(self._description):
            contract = Contract(document, document.root, hidden=_is_stray, style=style)
            prose = self._prose.step(contract.keywords.get("description"))
            yield Tool(ToolKind.STEP, "step", "Step", prose, self._output, _ACTS, contract)

    def _calls(self, environment_tools: Sequence[JsonObject]) -> Iterator[Tool]:
        for item in environment_tools:
            remote = item.get("name")
            if not isinstance(remote, str) or not remote:
                raise UnusableSchema(f"The environment lists a tool without a name: {str(item)[:200]}")
            document = read_document(_input_schema(item), f"the environment's tool {remote!r}")
            said = item.get("description")
            yield Tool(
                kind=ToolKind.CALL,
                name=self._name(remote),
                title=sentence_of(remote),
                description=self._prose.call(said if isinstance(said, str) else None),
                output_schema=self._output,
                annotations=_ACTS,
                contract=Contract(document, document.root, style=self._options.schemas),
                remote_name=remote,
            )

    def _name(self, wanted: str) -> str:
        name = tool_name(wanted, self._options.max_tool_name, self._names)
        self._names.add(name)
        return name


def _input_schema(item: JsonObject) -> object:
    """The tool's schema under either spelling; one that has none takes any arguments."""
    for key in ("input_schema", "inputSchema"):
        if item.get(key) is not None:
            return item[key]
    return {"type": "object"}


def _is_tool_call(properties: JsonObject) -> bool:
    kind = properties.get("type")
    value = kind.get("const", kind.get("enum")) if isinstance(kind, dict) else None
    return "tool_name" in properties and value in ("call_tool", ["call_tool"])


def _is_stray(name: str, schema: Schema) -> bool:
    """The open `metadata` object that every OpenEnv action has and no environment reads."""
    return name == "metadata" and isinstance(schema, dict) and schema.get("type") == "object" and not schema.get("properties")


def _no_arguments() -> Contract:
    document: Document = read_document(_NO_ARGUMENTS, "a tool without arguments")
    return Contract(document, document.root)
