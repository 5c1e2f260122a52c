"""openenv_gateway.demo.game: rules, opponent, determinism, what is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.demo.game import AGENT, FREE, OPPONENT, Game, IllegalMove, Result, opponent_move


def played(seed: int, *cells: int) -> Game:
    game = Game(seed)
    for cell in cells:
        game = game.play(cell)
    return game


@st.composite
def games(draw: st.DrawFn) -> Game:
    """A game after some legal moves, possibly at its end."""
    game = Game(draw(st.integers(0, 2**31)))
    for _ in range(draw(st.integers(0, 5))):
        if not game.legal_moves:
            break
        game = game.play(draw(st.sampled_from(game.legal_moves)))
    return game


def outcomes(game: Game) -> set[Result]:
    """Every result that can be reached from here."""
    if not game.legal_moves:
        return {game.result}
    return set().union(*(outcomes(game.play(cell)) for cell in game.legal_moves))


def test_every_outcome_can_be_reached() -> None:
    assert outcomes(Game(0)) == {Result.WON, Result.DRAWN, Result.LOST}


def test_equal_seeds_and_moves_give_equal_games() -> None:
    assert played(7, 1) == played(7, 1)
    assert {played(seed, 1).board for seed in range(40)} == {
        AGENT + FREE * (free - 1) + OPPONENT + FREE * (8 - free) for free in range(1, 9)
    }


@given(games())
def test_the_opponent_answers_every_move_until_the_game_is_over(game: Game) -> None:
    surplus = game.board.count(AGENT) - game.board.count(OPPONENT)
    assert surplus == (0 if game.result in (Result.PLAYING, Result.LOST) else surplus)
    assert surplus in (0, 1)
    assert bool(game.legal_moves) is (game.result is Result.PLAYING)


@given(games())
def test_a_game_is_over_after_at_most_five_moves_of_the_agent(game: Game) -> None:
    assert game.board.count(AGENT) <= 5


@pytest.mark.parametrize(
    ("board", "cell"),
    [("XX.OO.X..", 6), ("XX.O.....", 3), ("X...X.O..", 9), ("O.XXO.X..", 9)],
    ids=["wins rather than blocks", "blocks a row", "blocks a diagonal", "wins a diagonal"],
)
def test_the_opponent_wins_if_it_can_and_blocks_if_it_must(board: str, cell: int) -> None:
    assert {opponent_move(board, seed) for seed in range(20)} == {cell}


def test_a_taken_cell_is_refused_and_the_message_lists_the_free_ones() -> None:
    game = Game(0, board="X...O....")
    with pytest.raises(IllegalMove) as caught:
        game.play(5)
    assert str(caught.value) == "Cell 5 is taken by O; the board is unchanged. Free cells: 2, 3, 4, 6, 7, 8, 9."


def test_a_move_after_the_end_is_refused() -> None:
    with pytest.raises(IllegalMove, match="The game is over: reset starts a new one"):
        Game(0, board="XXXOO....").play(9)


def test_the_text_shows_the_board_and_tells_what_happened() -> None:
    game = Game(0, board="X...O....", last=(1, 5))
    assert game.text() == (
        " X | 2 | 3\n---+---+---\n 4 | O | 6\n---+---+---\n 7 | 8 | 9\n\n"
        "You are X, the opponent is O. You took cell 1, the opponent took cell 5. Your turn. Free cells: 2, 3, 4, 6, 7, 8, 9."
    )


@pytest.mark.parametrize(
    ("board", "verdict"),
    [("XXXOO....", "You win."), ("OOOXX..X.", "You lose."), ("XOXXOOOXX", "A draw.")],
)
def test_the_text_of_a_finished_game_names_its_result(board: str, verdict: str) -> None:
    assert Game(0, board).text().endswith(f"{verdict} The game is over.")
