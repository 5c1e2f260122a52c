"""Client side of OpenEnv environment servers."""

__version__ = "0.1.0"
