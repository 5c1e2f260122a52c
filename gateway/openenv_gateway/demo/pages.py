"""What the demo says about itself: the bodies of `/health`, `/schema`, `/metadata`, in the shape of an OpenEnv server's."""

from __future__ import annotations

import json
from typing import Any

from openenv_gateway.demo.game import CELLS, Result

GAME = (
    "Noughts and crosses (tic-tac-toe) against a simple opponent. You are X and move first; three in a row wins. "
    "An episode ends after 3 to 5 of your moves: reward 1 for a win, 0.5 for a draw, -1 for a loss, 0 before that."
)

_METADATA_FIELD = {"type": "object", "additionalProperties": True, "default": {}, "description": "Free remarks."}

ACTION: dict[str, Any] = {
    "title": "DemoAction",
    "description": "Put an X into a free cell.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "metadata": _METADATA_FIELD,
        "cell": {
            "type": "integer",
            "minimum": CELLS.start,
            "maximum": CELLS.stop - 1,
            "description": "The cell: 1 to 3 are the top row from left to right, 4 to 6 the middle row, 7 to 9 the bottom row.",
        },
    },
    "required": ["cell"],
}

OBSERVATION: dict[str, Any] = {
    "title": "DemoObservation",
    "description": "The board after your move and the opponent's answer.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "done": {"type": "boolean", "default": False, "description": "Whether the game is over."},
        "reward": {
            "anyOf": [{"type": "boolean"}, {"type": "integer"}, {"type": "number"}, {"type": "null"}],
            "default": None,
            "description": "1 win, 0.5 draw, -1 loss, 0 while the game goes on.",
        },
        "metadata": {**_METADATA_FIELD, "description": "`result` and the opponent's last cell."},
        "text": {"type": "string", "description": "The board as characters, what happened, what is possible."},
        "legal_moves": {"type": "array", "items": {"type": "integer"}, "description": "The free cells; empty when over."},
        "picture": {"type": "string", "description": "The board as a PNG in base64."},
    },
    "required": ["text", "legal_moves", "picture"],
}

STATE: dict[str, Any] = {
    "title": "DemoState",
    "description": "The whole game.",
    "type": "object",
    "additionalProperties": True,
    "properties": {
        "episode_id": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "description": "Null before reset."},
        "step_count": {"type": "integer", "minimum": 0, "default": 0, "description": "Your moves so far."},
        "board": {"type": "string", "description": "Nine characters, cell 1 first: X, O, or a dot for a free cell."},
        "seed": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "description": "The opponent's seed."},
        "result": {"type": "string", "enum": [result.value for result in Result]},
    },
}

METADATA = {
    "name": "noughts-and-crosses",
    "description": GAME,
    "readme_content": None,
    "version": "1.0.0",
    "author": None,
    "documentation_url": None,
}

PAGES: dict[str, str] = {
    "/health": json.dumps({"status": "healthy"}),
    "/schema": json.dumps(
        {"action": ACTION, "observation": OBSERVATION, "state": STATE, "reset_observation": OBSERVATION}
    ),
    "/metadata": json.dumps(METADATA),
}
"""The JSON body by path."""
