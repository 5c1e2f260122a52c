"""One agent's place: its environment session, its episode, and the rules that keep both its own.

One call is in flight at a time, a bounded number waits behind it. A reply that its caller gave up on is collected by the
next call and told there; it never becomes the answer of another call. A lane is never moved to a fresh environment in
silence: when the episode is gone the agent is told, and only `reset` starts anew.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Mapping
from typing import Any

from openenv_client.errors import EpisodeLost, ReplyOwed, ReplyTimeout
from openenv_client.frames import ErrorFrame, Kind, Observation, State
from openenv_gateway.errors import EpisodeOver, LaneBusy, UnknownHandle
from openenv_gateway.mapping.actions import Request
from openenv_gateway.pool.pool import LeasedSession, Pool
from openenv_gateway.sessions.faults import read_reply, require_answer
from openenv_gateway.sessions.outcome import ActionLate, Late, Outcome
from openenv_gateway.sessions.phases import Event, Phase, advance
from openenv_gateway.settings import EnvironmentSettings

log = logging.getLogger(__name__)

OPENED = "A new environment session was opened for this call and reset first: this is the start of a new episode."
RESET_LATE = "This answers your earlier reset with the same arguments, which finished late; it was not repeated."
OVER_AT_ONCE = "The environment ended this episode in its reset. If it gives no reason here, its log may hold one."
AUTO_RESET = "The previous episode was over: a new one was started instead, and your action was NOT executed."


class Lane:
    """One agent's place. `handle` names it (unguessable); only `principal` may use it.

    Owners are the MCP sessions that use it; a lane without owners lingers or is held by its handle alone (see `registry`).
    """

    def __init__(self, handle: str, principal: str, settings: EnvironmentSettings, pool: Pool) -> None:
        self.handle, self.principal = handle, principal
        self.owners: set[str] = set()
        self.lingers_since: float | None = None
        self.last_used = time.monotonic()
        self.phase = Phase.NEW
        self.step_count = 0
        self.episode: str | None = None
        self._settings, self._pool = settings, pool
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._lease: LeasedSession | None = None
        self._opening: asyncio.Task[Observation] | None = None
        self._latest: Observation | None = None
        self._untold: Late | None = None
        self._told: Late | None = None
        self._lost_because = ""
        self._sent: tuple[str, Mapping[str, Any]] = ("", {})
        self._reset_data: dict[str, Any] = {}
        self._ends: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<Lane {self.handle[:6]}…: {self.phase}, step {self.step_count}>"

    @property
    def busy(self) -> bool:
        """Whether a call is in flight or waits."""
        return self._waiting > 0

    async def call(self, request: Request, tool: str, timeout_s: float | None = None) -> Outcome:
        """Carry out one request, made by calling `tool`; `timeout_s` overrides the step timeout.

        Raises EnvironmentFault (the environment's own error frame; the episode goes on), ReplyTimeout (sent, outcome
        unknown, told by the next call), ActionLate (an earlier action's outcome; this one was not executed), EpisodeOver,
        EpisodeLost, LaneBusy, and what opening an environment session raises. Cancelling is safe at any point.
        """
        if self._waiting > self._settings.lane_queue:
            raise LaneBusy(f"{self._waiting} calls are running or waiting in this session already")
        self._waiting += 1
        try:
            async with self._turn:
                self.last_used = time.monotonic()
                return await self._perform(request, tool, timeout_s or self._settings.timeouts.step_s)
        finally:
            self._waiting -= 1
            self.last_used = time.monotonic()

    async def close(self) -> None:
        """End the lane at once, also in the middle of a call: that call then raises EpisodeLost."""
        if self.phase is not Phase.CLOSED:
            self.phase = advance(self.phase, Event.CLOSE)
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.release()
        await asyncio.gather(*self._ends, return_exceptions=True)

    def undelivered(self) -> None:
        """The last call's answer did not reach its agent, who had left by then: the next call tells what came of it, exactly
        as after a timeout. (An agent that dropped the connection and merely tries again must not act twice.)"""
        if not self.busy and self._untold is None:
            self._untold = self._told

    def give_up_session(self, reason: str) -> None:
        """Give the environment session back although the lane stays: the next call is told that its episode is lost."""
        if self._opening is not None or self.phase not in (Phase.IN_EPISODE, Phase.DONE):
            return
        self._lose(reason)

    # --- one call ---------------------------------------------------------------------------------------------------

    async def _perform(self, request: Request, tool: str, timeout_s: float) -> Outcome:
        await self._settle()
        if self.phase is Phase.CLOSED:
            raise UnknownHandle("This session was closed")
        match request.kind:
            case "reset":
                return await self._reset(request.data)
            case "step":
                return await self._step(request.data, tool, timeout_s)
            case "state":
                return await self._state(timeout_s)
            case _:
                return await self._observe()

    async def _reset(self, data: Mapping[str, Any]) -> Outcome:
        if (answer := self._answered_late(data)) is not None:
            return answer
        if self._lease is None:
            return self._begun(await self._open(data), opened=True)
        self._reset_data = dict(data)
        reply = _observation(await self._exchange("reset", data, self._settings.timeouts.reset_s))
        self._begin(reply)
        return self._begun(reply)

    def _begun(self, reply: Observation, *, opened: bool = False) -> Outcome:
        return self._outcome("reset", reply, notice=OVER_AT_ONCE if reply.done else None, opened=opened)

    def _answered_late(self, data: Mapping[str, Any]) -> Outcome | None:
        """A reset that repeats a given-up one is answered by that one's late outcome: else a host whose patience is shorter
        than a reset could never start an episode."""
        late = self._untold
        if late is None or late.kind != "reset" or not isinstance(late.reply, Observation) or data != self._reset_data:
            return None
        self._untold = None
        return self._outcome("reset", late.reply, notice=RESET_LATE, opened=True)

    async def _step(self, data: Mapping[str, Any], tool: str, timeout_s: float) -> Outcome:
        if self._untold is not None and self._settings.late_reply == "tell":
            self._told, self._untold = self._untold, None
            raise ActionLate(self._told)
        notice = await self._ensure_open()
        if self.phase is Phase.DONE and self._settings.after_done != "pass":
            return await self._step_after_done()
        reply = _observation(await self._exchange("step", data, timeout_s, tool))
        self._note_step(reply)
        return self._outcome("step", reply, notice=notice, opened=notice is not None)

    async def _step_after_done(self) -> Outcome:
        if self._settings.after_done == "error":
            over = "The episode is over (done was true); the action was not sent"
            raise EpisodeOver(over, next_step=self._after_done_advice())
        reply = _observation(await self._exchange("reset", self._settings.reset, self._settings.timeouts.reset_s))
        self._begin(reply)
        return self._outcome("reset", reply, notice=AUTO_RESET)

    def _after_done_advice(self) -> str | None:
        if self._settings.mapping.exposure == "full":
            return None
        return "The operator starts the next episode: this environment gives agents no reset (exposure = \"agent\")."

    async def _state(self, timeout_s: float) -> Outcome:
        notice = await self._ensure_open()
        reply = await self._exchange("state", {}, timeout_s)
        return self._outcome("state", reply, notice=notice, opened=notice is not None)

    async def _observe(self) -> Outcome:
        notice = await self._ensure_open()
        assert self._latest is not None, "an open lane has an observation"
        return self._outcome("state", self._latest, notice=notice, opened=notice is not None)

    def _outcome(
        self, kind: Kind, reply: Observation | State, *, notice: str | None = None, opened: bool = False
    ) -> Outcome:
        late, self._untold = self._untold, None
        self._told = late if kind == "state" else Late(kind, *self._sent, reply)
        return Outcome(reply, self.episode, self.step_count, late, notice, opened)

    # --- opening ----------------------------------------------------------------------------------------------------

    async def _ensure_open(self) -> str | None:
        """Open and reset when there is no session yet. Returns what to tell the agent about it."""
        if self.phase is Phase.LOST:
            raise self._lost_error()
        if self._lease is not None:
            return None
        await self._open(self._settings.reset)
        return OPENED

    async def _open(self, data: Mapping[str, Any]) -> Observation:
        """Open a session by its first reset. The work is the lane's own task, so that a caller who gives up while a server is
        launched does not end the launch: the next call finds the session open."""
        self.phase = advance(self.phase, Event.OPEN)
        self._sent = ("reset", data)
        self._reset_data = dict(data)
        opening = self._opening = asyncio.create_task(self._open_session(data), name=f"opening {self!r}")
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled():  # by close(), not by our caller
                raise EpisodeLost("the session was closed while it was being opened") from None
            raise
        finally:
            if opening.done():
                self._opening = None

    async def _open_session(self, data: Mapping[str, Any]) -> Observation:
        try:
            lease, raw = await self._pool.open("reset", data, self._settings.timeouts.reset_s)
            try:
                reply = _observation(require_answer(read_reply(raw, "reset"), "reset"))
            except BaseException:
                await lease.release()
                raise
        except BaseException:
            if self.phase is not Phase.CLOSED:
                self.phase = advance(self.phase, Event.FAILED)
            raise
        self._lease = lease
        self._begin(reply)
        return reply

    # --- the wire ---------------------------------------------------------------------------------------------------

    async def _exchange(
        self, kind: Kind, data: Mapping[str, Any], timeout_s: float, tool: str = "reset"
    ) -> Observation | State:
        assert self._lease is not None
        self._sent = (tool, data)
        try:
            raw = await self._lease.session.exchange(kind, data, timeout_s)
        except EpisodeLost as error:
            self._lose(error.reason)
            raise self._lost_error() from error
        return require_answer(read_reply(raw, kind), kind)

    async def _settle(self) -> None:
        """Wait for what an earlier call left behind: an opening, or an owed reply. Nothing is sent before that."""
        bound = self._settings.timeouts.late_reply_s
        if self._opening is not None:
            await self._settle_opening(self._opening, bound)
        if self._lease is None or (owed := self._lease.session.owes) is None:
            return
        try:
            raw = await self._lease.session.collect(bound)
        except ReplyTimeout:
            self._lose(f"the reply to an earlier {owed} did not come within {bound:g} s after it was given up")
            return
        except EpisodeLost as error:
            self._lose(error.reason)
            return
        self._take_late(owed, read_reply(raw, owed))

    async def _settle_opening(self, opening: asyncio.Task[Observation], bound: float) -> None:
        done, _ = await asyncio.wait({opening}, timeout=bound)
        if not done:
            raise ReplyOwed("reset")
        self._opening = None
        if (error := opening.exception()) is not None:
            log.warning("%r: an opening that its caller had given up failed: %s", self, error)
            return
        self._untold = Late("reset", "reset", self._reset_data, opening.result())

    def _take_late(self, kind: Kind, reply: Observation | State | ErrorFrame) -> None:
        if isinstance(reply, Observation):
            self._begin(reply) if kind == "reset" else self._note_step(reply)
        if kind != "state":
            self._untold = Late(kind, *self._sent, reply)

    # --- the episode ------------------------------------------------------------------------------------------------

    def _begin(self, reply: Observation) -> None:
        self.episode, self.step_count = secrets.token_hex(8), 0
        self._take(reply)

    def _note_step(self, reply: Observation) -> None:
        self.step_count += 1
        self._take(reply)

    def _take(self, reply: Observation) -> None:
        self._latest = reply
        if self.phase is not Phase.CLOSED:
            self.phase = advance(self.phase, Event.ENDED if reply.done else Event.PLAYING)

    def _lose(self, reason: str) -> None:
        if self.phase is not Phase.CLOSED:
            self.phase = advance(self.phase, Event.BROKE)
        self._lost_because = reason
        lease, self._lease = self._lease, None
        if lease is not None:
            end = asyncio.create_task(lease.release(), name="end of a lost environment session")
            self._ends.add(end)
            end.add_done_callback(self._ends.discard)

    def _lost_error(self) -> EpisodeLost:
        error = EpisodeLost(self._lost_because or "the session was closed")
        if self._settings.mapping.exposure == "agent":
            # Without reset the agent could never go on: it is told once, then `observe` opens a new episode and says so.
            error.next_step = "Call observe to start a new episode."
            self.phase = advance(self.phase, Event.TOLD) if self.phase is Phase.LOST else self.phase
        return error


def _observation(reply: Observation | State) -> Observation:
    assert isinstance(reply, Observation), "reset and step are answered by an observation frame"
    return reply
