"""What the official conformance suites ask of a server's tools, as an MCP environment: as far as OpenEnv's wire can carry it.

The names are the suites' own. Nothing here ends an episode or earns a reward; a gateway in front is what is judged.
"""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Any

import pictures
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from fastmcp.utilities.types import Audio, Image
from framework import serve
from mcp.types import EmbeddedResource, TextContent, TextResourceContents
from openenv.core.env_server import Observation, State
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from pydantic import Field

SLOW_S = float(os.environ.get("SLOW_S", "1.2"))
"""How long a tool takes that the suites expect to be told of while it runs."""

CONTACT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""The schema that the suites want to see again, keyword by keyword."""


class ContactTool(Tool):
    """A tool whose schema no Python signature could give."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(content=[TextContent(type="text", text=f"Contact: {arguments}")])


def tools() -> FastMCP:
    """The tools of one session."""
    box = FastMCP("judged", dereference_schemas=False)  # or it would replace every $ref before anybody sees it
    add_content(box)
    add_slow(box)
    add_routed(box)
    box.add_tool(
        ContactTool(
            name="json_schema_2020_12_tool", description="A tool with JSON Schema 2020-12 features", parameters=CONTACT_SCHEMA
        )
    )
    return box


def add_content(box: FastMCP) -> None:
    """One tool for each kind of content, and one that fails."""

    @box.tool
    def test_simple_text() -> str:
        """Answer with a text."""
        return "This is a simple text response for testing."

    @box.tool
    def test_image_content() -> Image:
        """Answer with a picture."""
        return Image(data=pictures.png(4, 4, 0), format="png")

    @box.tool
    def test_audio_content() -> Audio:
        """Answer with a sound."""
        return Audio(data=pictures.wav(64), format="wav")

    @box.tool
    def test_embedded_resource() -> ToolResult:
        """Answer with an embedded resource."""
        return ToolResult(content=[resource("test://embedded-resource", "text/plain", "An embedded resource.")])

    @box.tool
    def test_multiple_content_types() -> ToolResult:
        """Answer with a text, a picture and a resource."""
        picture = Image(data=pictures.png(4, 4, 1), format="png").to_image_content()
        data = resource("test://mixed-content-resource", "application/json", '{"test": "data", "value": 123}')
        return ToolResult(content=[TextContent(type="text", text="Multiple content types test:"), picture, data])

    @box.tool
    def test_error_handling() -> str:
        """Fail."""
        raise ToolError("This tool intentionally returns an error for testing")


def add_slow(box: FastMCP) -> None:
    """Tools of which the suites want to hear while they run. OpenEnv's wire has one reply per step and nothing in between:
    what is told meanwhile is the gateway's own."""

    @box.tool
    async def test_tool_with_progress() -> str:
        """Take a moment."""
        await asyncio.sleep(SLOW_S)
        return "Progress test completed"

    @box.tool
    async def test_tool_with_logging() -> str:
        """Take a moment."""
        await asyncio.sleep(SLOW_S)
        return "Logging test completed"

    @box.tool
    async def test_reconnection() -> str:
        """Take so long that the gateway asks its client to come back for the answer."""
        await asyncio.sleep(2.5 * SLOW_S)
        return "Reconnection test completed"

    @box.tool
    def test_logging_tool() -> str:
        """Answer, whether or not anybody wants to read a log."""
        return "nothing was logged"

    @box.tool
    def test_streaming_elicitation() -> str:
        """Answer without asking back: an environment cannot ask."""
        return "nothing was asked"


def add_routed(box: FastMCP) -> None:
    """A tool with an argument that clients repeat in a header, for the sake of those who route by it."""

    @box.tool
    def look_up(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], rows: int = 1) -> str:
        """Look something up in a region."""
        return f"{rows} rows of {region}"


def resource(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mimeType=mime_type, text=text))


class JudgedEnvironment(MCPEnvironment):
    """Tools that the official conformance suites call."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__(tools())
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Observation:
        self._state = State(episode_id=episode_id)
        return Observation(done=False, reward=0.0, metadata={"status": "ready"})

    def _step_impl(self, action: Any, timeout_s: float | None = None, **_: Any) -> Observation:
        raise ValueError(f"these tools take list_tools and call_tool, not {type(action).__name__}")

    @property
    def state(self) -> State:
        return self._state


app = serve(JudgedEnvironment, CallToolAction, CallToolObservation)
