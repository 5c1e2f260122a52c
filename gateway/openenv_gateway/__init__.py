"""A gateway through which any MCP host plays any OpenEnv environment."""

__version__ = "0.1.0"
