"""The protocol towards agents: JSON-RPC messages, revisions, the methods that an environment needs. No transport."""
