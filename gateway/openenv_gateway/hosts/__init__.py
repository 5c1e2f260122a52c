"""The blocks to paste into MCP hosts."""
