"""Lanes: one agent's place each, with its one environment session; and who may use which."""
