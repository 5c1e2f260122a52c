"""Noughts and crosses against a simple opponent. Pure: a game is a value, a move makes the next one.

The agent is X and moves first; cells are numbered 1 to 9, left to right and top to bottom. The opponent wins if it can, blocks
if it must, and otherwise takes a cell that depends on the seed and the board alone: equal seeds and moves give equal games. It
can be beaten with a fork, so an episode is 3 to 5 moves long and every outcome occurs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from enum import Enum

CELLS = range(1, 10)
LINES = ((1, 2, 3), (4, 5, 6), (7, 8, 9), (1, 4, 7), (2, 5, 8), (3, 6, 9), (1, 5, 9), (3, 5, 7))
FREE, AGENT, OPPONENT = ".", "X", "O"


class Result(Enum):
    """How a game stands for the agent."""

    PLAYING = "playing"
    WON = "won"
    DRAWN = "drawn"
    LOST = "lost"


REWARDS = {Result.PLAYING: 0.0, Result.WON: 1.0, Result.DRAWN: 0.5, Result.LOST: -1.0}
VERDICTS = {
    Result.PLAYING: "Your turn.",
    Result.WON: "You win. The game is over.",
    Result.DRAWN: "A draw. The game is over.",
    Result.LOST: "You lose. The game is over.",
}


class IllegalMove(ValueError):
    """A move that the board does not allow; the game is as it was. `str()` says which cells are free."""


@dataclass(frozen=True, slots=True)
class Game:
    """One game. `board` is nine characters, cell 1 first; `last` are the agent's last move and the opponent's answer to it."""

    seed: int
    board: str = FREE * 9
    last: tuple[int, int | None] | None = None

    @property
    def result(self) -> Result:
        if has_line(self.board, AGENT):
            return Result.WON
        if has_line(self.board, OPPONENT):
            return Result.LOST
        return Result.PLAYING if FREE in self.board else Result.DRAWN

    @property
    def legal_moves(self) -> list[int]:
        """The cells that may be taken now; none when the game is over."""
        return free_cells(self.board) if self.result is Result.PLAYING else []

    def play(self, cell: int) -> Game:
        """The game after the agent's move and the opponent's answer. Raises IllegalMove, also when the game is over."""
        if cell not in self.legal_moves:
            raise IllegalMove(self._refusal(cell))
        mine = replace(self, board=put(self.board, cell, AGENT), last=(cell, None))
        if mine.result is not Result.PLAYING:
            return mine
        answer = opponent_move(mine.board, self.seed)
        return replace(mine, board=put(mine.board, answer, OPPONENT), last=(cell, answer))

    def _refusal(self, cell: int) -> str:
        if self.result is not Result.PLAYING:
            return "The game is over: reset starts a new one."
        taken = f"Cell {cell} is taken by {self.board[cell - 1]}" if cell in CELLS else f"There is no cell {cell}"
        return f"{taken}; the board is unchanged. Free cells: {_listed(self.legal_moves)}."

    def text(self) -> str:
        """The board as characters, then what happened and what is possible: all that a language model needs."""
        return f"{drawing(self.board)}\n\n{self._story()}"

    def _story(self) -> str:
        parts = ["You are X, the opponent is O."]
        if self.last is not None:
            mine, answer = self.last
            parts.append(f"You took cell {mine}" + (f", the opponent took cell {answer}." if answer else "."))
        parts.append(VERDICTS[self.result])
        if self.legal_moves:
            parts.append(f"Free cells: {_listed(self.legal_moves)}.")
        return " ".join(parts)


def opponent_move(board: str, seed: int) -> int:
    """The opponent's cell: a win, else a block, else one drawn by seed and board. The board has a free cell."""
    free = free_cells(board)
    for mark in (OPPONENT, AGENT):
        for cell in free:
            if has_line(put(board, cell, mark), mark):
                return cell
    return random.Random(f"{seed} {board}").choice(free)


def free_cells(board: str) -> list[int]:
    return [cell for cell in CELLS if board[cell - 1] == FREE]


def has_line(board: str, mark: str) -> bool:
    return any(all(board[cell - 1] == mark for cell in line) for line in LINES)


def put(board: str, cell: int, mark: str) -> str:
    return board[: cell - 1] + mark + board[cell:]


def drawing(board: str) -> str:
    """Three rows of characters; a free cell shows its number."""
    shown = [str(cell) if board[cell - 1] == FREE else board[cell - 1] for cell in CELLS]
    return "\n---+---+---\n".join(f" {' | '.join(shown[row : row + 3])}" for row in (0, 3, 6))


def _listed(cells: list[int]) -> str:
    return ", ".join(map(str, cells))
