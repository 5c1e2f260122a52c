"""What came of calls whose callers did not hear it: kept, oldest first, until a later call tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from openenv_client.frames import Kind, Observation
from openenv_gateway.sessions.outcome import Late


class Telling:
    """One lane's. `untold` are the outcomes that nobody heard; the present call tells some, and those come back if its own
    caller is gone at its end."""

    def __init__(self) -> None:
        self.untold: list[Late] = []
        self._told: list[Late] = []
        self._answer: Observation | None = None
        self._kept: tuple[Late, ...] = ()

    def begin(self) -> None:
        """A call has its turn."""
        self._told, self._answer = [], None

    def refused(self) -> None:
        """A call got no turn: nothing of it is kept."""
        self._kept = ()

    def next(self) -> Late | None:
        """The oldest that nobody heard, to be told by the present call; None if there is none."""
        if not self.untold:
            return None
        late = self.untold.pop(0)
        self._told.append(late)
        return late

    def failed(self, late: Late) -> None:
        """The present call tells its own failure."""
        self._told.append(late)

    def answered(self, reply: Observation) -> None:
        """The present call tells its own answer."""
        self._answer = reply

    def end(self, sent: tuple[Kind, str, Mapping[str, Any]], *, is_gone: bool) -> None:
        """The call has ended, whose latest request was `sent`. If its caller is gone, what it told is kept."""
        if is_gone:
            answer = [] if self._answer is None else [Late(*sent, self._answer)]
            self._kept = (*self._told, *answer)
            self.untold = [*self._kept, *self.untold]

    def kept(self) -> Callable[[], None]:
        """To be called if the caller of the call that has just ended, though gone, got its outcome after all."""
        kept = self._kept

        def heard() -> None:
            self.untold = [late for late in self.untold if not any(late is one for one in kept)]

        return heard
