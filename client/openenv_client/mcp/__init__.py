"""MCP JSON-RPC over HTTP, as far as a client of environments needs it: the wire of `mode="production"`."""
