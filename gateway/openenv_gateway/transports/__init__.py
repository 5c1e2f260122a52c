"""From bytes to JSON-RPC messages and back: HTTP, WebSockets, stdio. Each finds out who is calling and asks the kernel."""
