"""One `/ws` session of the demo as a conversation without a socket: a received frame in, the reply out. No I/O.

The replies have the shape of OpenEnv's own servers (openenv-core 0.2 to openenv 0.10), error codes included. Choices that
OpenEnv leaves to the environment:

- a step before reset, and a move that the board does not allow, are EXECUTION_ERROR frames: nothing changes, no step counts,
  the message lists what is possible, and the session goes on;
- a step after the end is answered with the last observation again, done, reward 0.
"""

from __future__ import annotations

import base64
import json
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from openenv_gateway.demo.game import CELLS, FREE, REWARDS, Game, IllegalMove, Result
from openenv_gateway.demo.picture import board_png

WITHOUT_DATA = ("state", "close")
"""Frames that have no member but their type."""
ACTION_KEYS = ("cell", "metadata")


class Refused(Exception):
    """A frame that gets an error reply. `ends` is true where OpenEnv's servers end the session after it."""

    def __init__(self, code: str, message: str, *, ends: bool = False, **more: Any) -> None:
        super().__init__(message)
        self.frame = error_frame(code, message, **more)
        self.ends = ends


@dataclass(frozen=True, slots=True)
class Answer:
    """What to do about one received frame: send `frame`, if any; close with 1000 if `ends`; `note` is a line for a log."""

    frame: str | None = None
    ends: bool = False
    note: str | None = None


@dataclass(slots=True)
class Session:
    """One environment session: at most one game at a time."""

    game: Game | None = None
    episode_id: str | None = None
    step_count: int = 0
    _verbs: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._verbs = {"reset": self._reset, "step": self._step, "state": self._state, "close": _close, "mcp": _no_mcp}

    def receive(self, raw: str | bytes) -> Answer:
        """The answer to one WebSocket message. Never raises: whatever comes has an error frame."""
        try:
            frame = _decoded(raw)
            kind = frame.get("type", "")
            verb = self._verbs.get(kind) if isinstance(kind, str) else None
            if verb is None:
                raise Refused("UNKNOWN_TYPE", f"Unknown message type: {kind}")
            answer: Answer = verb(_data_of(frame))
            return answer
        except Refused as refused:
            return Answer(refused.frame, refused.ends)

    def _reset(self, data: Mapping[str, Any]) -> Answer:
        seed, episode_id = data.get("seed"), data.get("episode_id")
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
            raise invalid("int_type", ["data", "seed"], "Input should be a whole number of 0 or more", seed)
        if episode_id is not None and not isinstance(episode_id, str):
            raise invalid("string_type", ["data", "episode_id"], "Input should be a valid string", episode_id)
        self.game = Game(secrets.randbelow(2**31) if seed is None else seed)
        self.episode_id, self.step_count = episode_id or str(uuid.uuid4()), 0
        return Answer(self._observation(self.game, 0.0), note=f"reset: seed {self.game.seed}")

    def _step(self, data: Mapping[str, Any]) -> Answer:
        cell = _cell(data)
        if self.game is None:
            raise Refused("EXECUTION_ERROR", "No game is running: send reset first.")
        if self.game.result is not Result.PLAYING:
            return Answer(self._observation(self.game, 0.0), note=f"step: cell {cell} after the end")
        try:
            self.game = self.game.play(cell)
        except IllegalMove as illegal:
            raise Refused("EXECUTION_ERROR", str(illegal)) from illegal
        self.step_count += 1
        return Answer(self._observation(self.game, REWARDS[self.game.result]), note=f"step: cell {cell}")

    def _state(self, _data: Mapping[str, Any]) -> Answer:
        game = self.game
        state = {
            "episode_id": self.episode_id,
            "step_count": self.step_count,
            "board": game.board if game else FREE * 9,
            "seed": game.seed if game else None,
            "result": (game.result if game else Result.PLAYING).value,
        }
        return Answer(json.dumps({"type": "state", "data": state}))

    def _observation(self, game: Game, reward: float) -> str:
        metadata = {"result": game.result.value, "opponent_cell": game.last[1] if game.last else None}
        observation = {
            "metadata": metadata,
            "text": game.text(),
            "legal_moves": game.legal_moves,
            "picture": base64.b64encode(board_png(game.board)).decode(),
        }
        done = game.result is not Result.PLAYING
        data = {"observation": observation, "reward": reward, "done": done, "metadata": metadata}
        return json.dumps({"type": "observation", "data": data})


def error_frame(code: str, message: str, **more: Any) -> str:
    """An error frame; `more` are further members of its data."""
    return json.dumps({"type": "error", "data": {"message": message, "code": code, **more}})


def invalid(kind: str, place: list[str], message: str, found: object) -> Refused:
    """A VALIDATION_ERROR about one field, in the words of pydantic's error lists, which OpenEnv's servers send."""
    fault = {"type": kind, "loc": place, "msg": message, "input": found}
    return Refused("VALIDATION_ERROR", "Invalid message", errors=[fault])


def _decoded(raw: str | bytes) -> dict[str, Any]:
    if isinstance(raw, bytes):
        raise Refused("SESSION_ERROR", "binary frames are not part of the protocol", ends=True)
    try:
        frame = json.loads(raw, parse_constant=_no_json_number)
    except (ValueError, RecursionError) as error:
        raise Refused("INVALID_JSON", f"Invalid JSON: {error}") from error
    if not isinstance(frame, dict):
        raise Refused("SESSION_ERROR", f"a frame is a JSON object, not a {type(frame).__name__}", ends=True)
    return frame


def _no_json_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _data_of(frame: Mapping[str, Any]) -> Mapping[str, Any]:
    allowed = ("type",) if frame["type"] in WITHOUT_DATA else ("type", "data")
    for key in frame:
        if key not in allowed:
            raise invalid("extra_forbidden", [key], "Extra inputs are not permitted", frame[key])
    if "data" not in frame and frame["type"] == "step":
        raise invalid("missing", ["data"], "Field required", frame)
    data = frame.get("data", {})
    if not isinstance(data, dict):
        raise invalid("dict_type", ["data"], "Input should be a valid dictionary", data)
    return data


def _cell(action: Mapping[str, Any]) -> int:
    for key in action:
        if key not in ACTION_KEYS:
            raise invalid("extra_forbidden", [key], "Extra inputs are not permitted", action[key])
    if "cell" not in action:
        raise invalid("missing", ["cell"], "Field required", action)
    cell = action["cell"]
    if isinstance(cell, float) and cell.is_integer():  # JSON has one kind of number: 5.0 is the integer 5
        cell = int(cell)
    if not isinstance(cell, int) or isinstance(cell, bool):
        raise invalid("int_type", ["cell"], "Input should be a valid integer", cell)
    if cell not in CELLS:
        raise invalid("out_of_range", ["cell"], f"Input should be {CELLS.start} to {CELLS.stop - 1}", cell)
    return cell


def _close(_data: Mapping[str, Any]) -> Answer:
    return Answer(ends=True)


def _no_mcp(data: Mapping[str, Any]) -> Answer:
    error = {"code": -32603, "message": "Environment does not support MCP", "data": None}
    return Answer(json.dumps({"type": "mcp", "data": {"jsonrpc": "2.0", "id": data.get("id"), "error": error}}))
