"""One agent's place: its episode, and the rules that keep it its own.

One call is in flight at a time, a bounded number waits behind it. An outcome that its caller did not get (a timeout, a
cancellation, a dropped connection) is told by the next call: an agent that merely tries again must not act twice. A lane is
never moved to a fresh environment in silence: when the episode is gone the agent is told, and only `reset` starts anew.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from openenv_client.errors import BadReply, EnvironmentFault, EpisodeLost
from openenv_client.frames import ErrorFrame, Kind, Observation, Reply, State
from openenv_gateway.errors import EpisodeOver, LaneBusy, UnknownHandle
from openenv_gateway.mapping.actions import Request
from openenv_gateway.pool.pool import Pool
from openenv_gateway.sessions.outcome import ActionLate, Late, Outcome
from openenv_gateway.sessions.phases import Event, Phase, advance
from openenv_gateway.sessions.telling import Telling
from openenv_gateway.sessions.wire import OPERATOR, Wire
from openenv_gateway.settings import EnvironmentSettings

log = logging.getLogger(__name__)

OPENED = "A new environment session was opened for this call and reset first: this is the start of a new episode."
RESET_LATE = "This answers your earlier reset with the same arguments, which finished late; it was not repeated."
OVER_AT_ONCE = "The environment ended this episode in its reset. If it gives no reason here, its log may hold one."
AUTO_RESET = "The previous episode was over: a new one was started instead, and your action was NOT executed."


def _never() -> bool:
    return False


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
        self._wire = Wire(pool, settings.timeouts)
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._latest: Observation | None = None
        self._telling = Telling()
        self._lost_because = ""
        self._loss_told = False

    def __repr__(self) -> str:
        return f"<Lane {self.handle[:6]}…: {self.phase}, step {self.step_count}>"

    @property
    def busy(self) -> bool:
        """Whether a call is in flight or waits."""
        return self._waiting > 0

    @property
    def latest(self) -> Observation | None:
        """The latest observation, None before the first."""
        return self._latest

    @property
    def holds_place(self) -> bool:
        """Whether it has an environment session that somebody else could use the room of."""
        return self._wire.has_session

    def doing(self) -> str:
        """What a call waits for, in a few words."""
        if self.phase in (Phase.OPENING, Phase.REOPENING):
            return self._pool.doing(self._wire.ticket)
        kind, tool, _ = self._wire.sent
        return f"waiting for the environment's answer to {kind if kind == tool else f'{kind} ({tool})'}"

    async def call(
        self, request: Request, tool: str, timeout_s: float | None = None, gone: Callable[[], bool] = _never
    ) -> Outcome:
        """Carry out one request, made by calling `tool`; `timeout_s` overrides the step timeout.

        `gone` says at the end whether the caller has left meanwhile: then the outcome is kept for the next call. Raises
        EnvironmentFault (the environment's own error frame; the episode goes on), ReplyTimeout (sent, outcome unknown, told by
        the next call), ActionLate (an earlier action's outcome; this one was not executed), EpisodeOver, EpisodeLost, LaneBusy,
        and what opening an environment session raises. Cancelling is safe at any point.
        """
        await self._begin_turn()
        try:
            return await self._perform(request, tool, timeout_s or self._settings.timeouts.step_s)
        finally:
            self._end_turn(gone())

    async def relay(self, kind: Kind, data: Mapping[str, Any], timeout_s: float) -> bytes:
        """Send an operator's request on as it is. Returns the server's reply as it came, an error frame too.

        Nothing is added: no reset before a first step, no rule after done, and an outcome that an operator gave up is told to
        nobody. Raises ReplyTimeout, EpisodeLost, BadReply, LaneBusy, StillOpening, UnknownHandle (the lane was closed), and
        what opening an environment session raises. Cancelling is safe at any point.
        """
        await self._begin_turn()
        try:
            return await self._relay(kind, data, timeout_s)
        finally:
            self._end_turn()

    async def close(self) -> None:
        """End the lane at once, also in the middle of a call: that call then raises EpisodeLost."""
        if self.phase is not Phase.CLOSED:
            self.phase = advance(self.phase, Event.CLOSE)
        await self._wire.close()

    def kept_of_last_turn(self) -> Callable[[], None]:
        """Asked for right after a `call` whose caller had left: to be called if the caller got its outcome after all."""
        return self._telling.kept()

    def give_up_session(self, reason: str) -> None:
        """Give the environment session back although the lane stays: the next call is told that its episode is lost."""
        if self.phase in (Phase.IN_EPISODE, Phase.DONE):
            self._lose(reason)

    # --- one call ---------------------------------------------------------------------------------------------------

    async def _begin_turn(self) -> None:
        if self._waiting > self._settings.lane_queue:
            self._telling.refused()
            raise LaneBusy(f"{self._waiting} calls are running or waiting in this session already")
        self._waiting += 1
        try:
            await self._turn.acquire()
        except BaseException:
            self._waiting -= 1
            self._telling.refused()
            raise
        self.last_used = time.monotonic()
        self._telling.begin()

    def _end_turn(self, is_gone: bool = False) -> None:
        """`is_gone`: the caller did not get what it was to be told, so the next one is."""
        self._telling.end(self._wire.sent, is_gone=is_gone)
        self._turn.release()
        self._waiting -= 1
        self.last_used = time.monotonic()

    async def _perform(self, request: Request, tool: str, timeout_s: float) -> Outcome:
        if self._wire.is_unsettled or self.phase is Phase.CLOSED:
            await self._ready()
        match request.kind:
            case "reset":
                return await self._reset(request.data)
            case "step":
                return await self._step(request.data, tool, timeout_s)
            case "state":
                return await self._state(timeout_s)
            case _:
                return await self._observe()

    async def _relay(self, kind: Kind, data: Mapping[str, Any], timeout_s: float) -> bytes:
        await self._ready()
        if self._wire.has_session and not self._wire.is_open:
            self._lose("the connection broke")
        if self.phase is Phase.LOST and kind != "reset":
            raise self._lost_error()
        if not self._wire.has_session:
            self.phase = advance(self.phase, Event.OPEN)
        try:
            raw, reply = await self._wire.relay(kind, data, timeout_s)
        except Exception as error:
            self._opening_failed()
            if isinstance(error, EpisodeLost | BadReply):
                self._lose(error.reason if isinstance(error, EpisodeLost) else str(error))
            raise
        if kind == "reset":
            self._telling.untold.clear()  # whoever begins anew has done with what is late
        self._follow(kind, reply)
        return raw

    async def _reset(self, data: Mapping[str, Any]) -> Outcome:
        if (answer := self._answered_late(data)) is not None:
            return answer
        if self._wire.has_session and not self._wire.is_open:
            self._lose("the connection broke")  # a reset starts anew in any case
        opened = not self._wire.has_session
        reply = await (self._open(data) if opened else self._start_anew(data))
        return self._outcome("reset", reply, notice=OVER_AT_ONCE if reply.done else None, opened=opened)

    def _answered_late(self, data: Mapping[str, Any]) -> Outcome | None:
        """A reset that repeats a given-up one is answered by that one's late outcome: else a host whose patience is shorter
        than a reset could never start an episode."""
        late = self._telling.untold[-1] if self._telling.untold else None
        if late is None or late.kind != "reset" or late.action != data or not self._wire.is_open:
            return None
        if not isinstance(late.reply, Observation):
            return None
        self._telling.untold.pop()
        return self._outcome("reset", late.reply, notice=RESET_LATE, opened=True)

    async def _step(self, data: Mapping[str, Any], tool: str, timeout_s: float) -> Outcome:
        # With "execute" one late outcome fits beside the new one in a result; a second must be told first.
        if len(self._telling.untold) > (1 if self._settings.late_reply == "execute" else 0):
            late = self._telling.next()
            assert late is not None, "there is one at least"
            raise ActionLate(late)
        notice = None if self.phase is Phase.IN_EPISODE else await self._ensure_open()
        if self.phase is Phase.DONE and self._settings.after_done != "pass":
            return await self._step_after_done()
        reply = _observation(await self._exchange("step", tool, data, timeout_s))
        self._note_step(reply)
        return self._outcome("step", reply, notice=notice, opened=notice is not None)

    async def _step_after_done(self) -> Outcome:
        if self._settings.after_done == "error":
            over = "The episode is over (done was true); the action was not sent"
            raise EpisodeOver(over, next_step=self._after_done_advice())
        return self._outcome("reset", await self._start_anew(self._settings.reset), notice=AUTO_RESET)

    def _after_done_advice(self) -> str | None:
        if self._settings.mapping.exposure == "full":
            return None
        return 'The operator starts the next episode: this environment gives agents no reset (exposure = "agent").'

    async def _state(self, timeout_s: float) -> Outcome:
        notice = await self._ensure_open()
        reply = await self._exchange("state", "state", {}, timeout_s)
        return self._outcome("state", reply, notice=notice, opened=notice is not None)

    async def _observe(self) -> Outcome:
        if self.phase is Phase.LOST and self._loss_told:
            self.phase = advance(self.phase, Event.TOLD)
        notice = await self._ensure_open()
        if self._latest is None:  # an operator opened it, and has not reset it yet
            await self._start_anew(self._settings.reset)
            notice = OPENED
        assert self._latest is not None, "a reset gives an observation"
        return self._outcome("state", self._latest, notice=notice, opened=notice is not None)

    def _outcome(
        self, kind: Kind, reply: Observation | State, *, notice: str | None = None, opened: bool = False
    ) -> Outcome:
        if kind != "state" and isinstance(reply, Observation):
            self._telling.answered(reply)
        return Outcome(reply, self.episode, self.step_count, self._telling.next(), notice, opened)

    # --- the environment --------------------------------------------------------------------------------------------

    async def _ensure_open(self) -> str | None:
        """Open and reset when there is no session yet. Returns what to tell the agent about it."""
        if self.phase is Phase.LOST:
            raise self._lost_error()
        if self._wire.has_session:
            return None
        await self._open(self._settings.reset)
        return OPENED

    async def _open(self, data: Mapping[str, Any]) -> Observation:
        self.phase = advance(self.phase, Event.OPEN)
        try:
            reply = await self._wire.open(data)
        except Exception:
            self._opening_failed()
            raise
        self._begin(reply)
        return reply

    def _opening_failed(self) -> None:
        if self.phase in (Phase.OPENING, Phase.REOPENING):
            self.phase = advance(self.phase, Event.FAILED)

    async def _start_anew(self, data: Mapping[str, Any]) -> Observation:
        reply = _observation(await self._exchange("reset", "reset", data, self._settings.timeouts.reset_s))
        self._begin(reply)
        return reply

    async def _exchange(self, kind: Kind, tool: str, data: Mapping[str, Any], timeout_s: float) -> Observation | State:
        try:
            return await self._wire.exchange(kind, tool, data, timeout_s)
        except EpisodeLost as error:
            self._lose(error.reason)
            raise self._lost_error() from error
        except BadReply as error:
            self._lose(str(error))
            raise
        except EnvironmentFault as fault:
            if kind != "state":
                frame = ErrorFrame(fault.message, fault.code, {})
                self._telling.failed(Late(kind, tool, data, frame))
            raise

    async def _ready(self) -> None:
        await self._settle()
        if self.phase is Phase.CLOSED:
            raise UnknownHandle("This session was closed")

    async def _settle(self) -> None:
        """Take what an earlier call left behind before anything is sent."""
        opening = self.phase in (Phase.OPENING, Phase.REOPENING)
        try:
            late = await self._wire.settle()
        except (EpisodeLost, BadReply) as error:
            self._opening_failed()
            self._lose(error.reason if isinstance(error, EpisodeLost) else str(error))
            return
        if late is None:
            if opening:
                self._opening_failed()
            return
        self._follow(late.kind, late.reply)
        if late.tool == OPERATOR:
            log.info("an operator gave up a %s, which was carried out", late.kind)
        elif late.kind != "state":
            self._telling.untold.append(late)

    # --- the episode ------------------------------------------------------------------------------------------------

    def _follow(self, kind: Kind, reply: Reply) -> None:
        """What a reply does to the episode."""
        if isinstance(reply, Observation):
            self._begin(reply) if kind == "reset" else self._note_step(reply)
        elif self.phase in (Phase.OPENING, Phase.REOPENING):  # only an operator opens a session without a reset
            self.phase = advance(self.phase, Event.PLAYING)

    def _begin(self, reply: Observation) -> None:
        self.episode, self.step_count, self._loss_told = secrets.token_hex(8), 0, False
        self._take(reply)

    def _note_step(self, reply: Observation) -> None:
        self.episode = self.episode or secrets.token_hex(8)
        self.step_count += 1
        self._take(reply)

    def _take(self, reply: Observation) -> None:
        self._latest = reply
        if self.phase is not Phase.CLOSED:
            self.phase = advance(self.phase, Event.ENDED if reply.done else Event.PLAYING)

    def _lose(self, reason: str) -> None:
        if self.phase in (Phase.IN_EPISODE, Phase.DONE):
            self.phase = advance(self.phase, Event.BROKE)
        self._lost_because = reason
        self._wire.drop()

    def _lost_error(self) -> EpisodeLost:
        error = EpisodeLost(self._lost_because or "the session was closed")
        if self._settings.mapping.exposure == "agent":
            # Without reset the agent could never go on: once it has been told, `observe` opens a new episode and says so.
            error.next_step = "Call observe to start a new episode."
            self._loss_told = True
        return error


def _observation(reply: Observation | State) -> Observation:
    assert isinstance(reply, Observation), "read_reply checks that reset and step are answered by an observation"
    return reply
