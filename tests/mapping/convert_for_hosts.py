"""Runs in an environment of its own: converts tools as hosts do, and prints as JSON what each converter made of each tool.

Standard input: a JSON list of MCP Tool objects. Standard output: `{tool name: {converter: "strict" | "accepted" | error}}`.
"""

import json
import sys

from agents.mcp import MCPServerStreamableHttp  # type: ignore[import-not-found]
from agents.mcp.util import MCPUtil  # type: ignore[import-not-found]
from agents.strict_schema import ensure_strict_json_schema  # type: ignore[import-not-found]
from google.genai._mcp_utils import mcp_to_gemini_tool  # type: ignore[import-not-found]
from mcp.types import Tool

# Never connected: the conversion only asks it for its name and policies.
SERVER = MCPServerStreamableHttp(params={"url": "http://127.0.0.1:1/mcp"})


def strict_schema(tool: Tool, schema: dict) -> str:  # type: ignore[type-arg]
    ensure_strict_json_schema(schema)
    return "accepted"


def function_tool(tool: Tool, schema: dict) -> str:  # type: ignore[type-arg]
    made = MCPUtil.to_function_tool(tool, SERVER, convert_schemas_to_strict=True)
    return "strict" if made.strict_json_schema else "accepted"


def gemini(tool: Tool, schema: dict) -> str:  # type: ignore[type-arg]
    mcp_to_gemini_tool(tool)
    return "accepted"


def outcome(convert, described: dict) -> str:  # type: ignore[type-arg,no-untyped-def]
    tool = Tool.model_validate(described)
    try:
        return convert(tool, json.loads(json.dumps(described["inputSchema"])))  # type: ignore[no-any-return]
    except Exception as error:  # noqa: BLE001  (whatever a converter raises is its verdict, and is printed)
        return f"{type(error).__name__}: {error}"


CONVERTERS = {"openai strict schema": strict_schema, "openai function tool": function_tool, "gemini": gemini}

verdicts = {
    described["name"]: {name: outcome(convert, described) for name, convert in CONVERTERS.items()}
    for described in json.load(sys.stdin)
}
print(json.dumps(verdicts))
