"""The client's contract: errors, timeouts, late replies, lost episodes, refusals, and the order of closing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from testkit.clients import Add, Count, CountingClient, ServerProvider
from testkit.script import Counting, Turn, Wire, error, observation
from testkit.scripted import ScriptedServer, ScriptedSession

from openenv_client import StepResult
from openenv_client.errors import (
    BadReply,
    CapacityReached,
    EnvironmentFault,
    EpisodeLost,
    FactoryFailed,
    LateReply,
    ReplyTimeout,
)

SHORT = 0.05


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as running:
        yield running


# Errors


async def test_an_error_frame_is_a_runtime_error_with_message_code_and_field_errors(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        with pytest.raises(RuntimeError) as failure:
            await client.step(Add("much"))  # type: ignore[arg-type]
        assert str(failure.value) == "Server error: Invalid message (code: VALIDATION_ERROR)"
        assert isinstance(failure.value, EnvironmentFault)
        assert failure.value.errors == ({"loc": ["add"], "msg": "Field required"},)
        assert (await client.step(Add(1))).observation == Count(1)


async def test_an_error_frame_without_a_code_says_so() -> None:
    async with ScriptedServer([Turn({"type": "error", "data": {"message": "no"}})]) as server:
        async with CountingClient(server.url) as client:
            with pytest.raises(RuntimeError, match=r"^Server error: no \(code: UNKNOWN\)$"):
                await client.reset()


@pytest.mark.parametrize("call", ["reset", "step", "state"])
async def test_a_full_server_is_always_the_same_error_with_its_numbers(call: str) -> None:
    async with ScriptedServer(capacity=1) as server, CountingClient(server.url) as holder:
        await holder.reset()
        for _ in range(34):  # three kinds of call: 100 tries
            async with CountingClient(server.url) as client:
                with pytest.raises(RuntimeError) as refusal:
                    await (client.step(Add(1)) if call == "step" else getattr(client, call)())
            assert isinstance(refusal.value, CapacityReached)
            assert (refusal.value.active_sessions, refusal.value.max_sessions) == (1, 1)
            assert str(refusal.value) == (
                "Server error: Server at capacity: 1/1 sessions active. (code: CAPACITY_REACHED)"
            )
        assert (await holder.step(Add(1))).observation == Count(1)


async def test_a_refused_client_gets_a_session_as_soon_as_one_is_free() -> None:
    async with ScriptedServer(capacity=1) as server:
        holder, waiting = CountingClient(server.url), CountingClient(server.url)
        await holder.reset()
        with pytest.raises(CapacityReached):
            await waiting.reset()
        await holder.close()
        assert (await waiting.reset()).observation == Count(0)
        await waiting.close()


async def test_a_broken_factory_is_told_apart_from_a_full_server() -> None:
    async with ScriptedServer(factory_error="no ROM") as server, CountingClient(server.url) as client:
        with pytest.raises(FactoryFailed, match=r"^Server error: no ROM \(code: FACTORY_ERROR\)$"):
            await client.reset()


async def test_an_answer_that_is_no_frame_is_an_error_that_says_what_came() -> None:
    async with ScriptedServer([Turn("hello")]) as server, CountingClient(server.url) as client:
        with pytest.raises(BadReply, match="not an OpenEnv frame"):
            await client.reset()


async def test_what_is_no_json_is_refused_before_anything_is_sent(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        with pytest.raises(TypeError):
            await client.reset(seed=object())
        assert server.requests == []
        assert (await client.reset()).observation == Count(0)


# Timeouts and late replies


async def test_a_timeout_is_a_timeout_error_that_says_what_was_sent(server: ScriptedServer) -> None:
    async with CountingClient(server.url, message_timeout_s=SHORT) as client:
        server.hold_reply()
        with pytest.raises(TimeoutError) as failure:
            await client.reset()
        assert isinstance(failure.value, ReplyTimeout)
        assert str(failure.value) == "No reply to reset within 0.05 s; it was sent and its outcome is unknown"


async def test_timeout_s_bounds_one_step(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout, match=r"within 0\.05 s"):
            await client.step(Add(1), timeout_s=SHORT)


async def test_other_arguments_of_step_are_ignored_as_openenvs_client_does(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        assert (await client.step(Add(1), whatever=3)).reward == 1.0


async def give_up_by_timeout(client: CountingClient, server: ScriptedServer) -> None:
    with pytest.raises(ReplyTimeout):
        await client.step(Add(1), timeout_s=SHORT)


async def give_up_by_cancellation(client: CountingClient, server: ScriptedServer) -> None:
    sent = len(server.requests)
    stepping = asyncio.ensure_future(client.step(Add(1)))
    await server.until(lambda: len(server.requests) > sent)
    stepping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stepping


async def give_up_by_wait_for(client: CountingClient, server: ScriptedServer) -> None:
    with pytest.raises((TimeoutError, asyncio.TimeoutError)):
        await asyncio.wait_for(client.step(Add(1)), SHORT)


give_ups = pytest.mark.parametrize("give_up", [give_up_by_timeout, give_up_by_cancellation, give_up_by_wait_for])
GiveUp = Callable[[CountingClient, ScriptedServer], Any]


@give_ups
async def test_after_giving_up_the_episode_is_lost_until_reset(give_up: GiveUp, server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        server.hold_reply()
        await give_up(client, server)
        server.release_reply()
        sent = len(server.requests)
        for call in (client.step(Add(5)), client.state(), client.connect(), client.step(Add(5))):
            try:
                assert await call is client  # connecting again is allowed, and brings no episode back
            except EpisodeLost as lost:
                assert str(lost).startswith("The episode is lost: ") and "so that its outcome is unknown" in str(lost)
                assert lost.next_step == "Call reset to start a new episode."
        assert len(server.requests) == sent
        assert (await client.reset()).observation == Count(0)
        assert await client.step(Add(2)) == StepResult(Count(2), 2.0, False)


@give_ups
async def test_with_late_reply_s_the_next_step_gets_the_late_outcome_told_and_is_not_sent(
    give_up: GiveUp, server: ScriptedServer
) -> None:
    async with CountingClient(server.url, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        await give_up(client, server)
        server.release_reply()
        sent = len(server.requests)
        with pytest.raises(LateReply) as late:
            await client.step(Add(5))
        assert late.value.result == StepResult(Count(1), 1.0, False)
        assert len(server.requests) == sent
        assert (await client.step(Add(2))).observation == Count(3)


async def test_a_late_failure_is_told_as_the_cause(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.step(Add("much"), timeout_s=SHORT)  # type: ignore[arg-type]
        server.release_reply()
        with pytest.raises(LateReply) as late:
            await client.step(Add(5))
        assert late.value.payload is None and isinstance(late.value.__cause__, EnvironmentFault)


async def test_state_answers_after_a_timeout_and_leaves_the_telling_to_the_next_step(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.step(Add(1), timeout_s=SHORT)
        server.release_reply()
        assert await client.state() == 1
        with pytest.raises(LateReply):
            await client.step(Add(5))
        assert (await client.step(Add(5))).observation == Count(6)


async def test_a_late_state_is_nobodys_business(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=5, message_timeout_s=SHORT) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.state()
        server.release_reply()
        assert (await client.step(Add(4))).observation == Count(4)


async def test_reset_drops_what_came_late_and_keeps_the_session(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.step(Add(1), timeout_s=SHORT)
        server.release_reply()
        assert (await client.reset()).observation == Count(0)
        assert (await client.step(Add(4))).observation == Count(4)
    assert server.sessions_opened == 1


async def test_a_reply_that_never_comes_loses_the_episode_and_reset_takes_another_session(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=SHORT) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.step(Add(1), timeout_s=SHORT)
        with pytest.raises(EpisodeLost, match=r"the reply to an earlier step did not come"):
            await client.step(Add(1))
        with pytest.raises(EpisodeLost):
            await client.state()
        server.release_reply()
        assert (await client.reset()).observation == Count(0)
    assert server.sessions_opened == 2


async def test_a_one_session_server_that_still_runs_the_given_up_step_is_asked_until_it_is_free() -> None:
    async with ScriptedServer(capacity=1) as server:
        async with CountingClient(server.url, message_timeout_s=5) as client:
            await client.reset()
            server.hold_reply()
            with pytest.raises(ReplyTimeout):
                await client.step(Add(1), timeout_s=SHORT)
            resetting = asyncio.ensure_future(client.reset())
            await server.until(lambda: server.sessions_opened >= 3)  # refused once, and asked again
            server.release_reply()
            assert (await resetting).observation == Count(0)


async def test_a_close_ends_that_asking() -> None:
    async with ScriptedServer(capacity=1) as server:
        client = CountingClient(server.url, message_timeout_s=5)
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.step(Add(1), timeout_s=SHORT)
        resetting = asyncio.ensure_future(client.reset())
        await server.until(lambda: server.sessions_opened >= 3)
        await client.close()
        with pytest.raises((EpisodeLost, CapacityReached)):
            await asyncio.wait_for(resetting, 2)
        server.release_reply()
        assert (await client.reset()).observation == Count(0)
        await client.close()


# The far end


async def cut(server: ScriptedServer) -> None:
    server.cut()


async def hang_up(server: ScriptedServer) -> None:
    await server.hang_up(1011, "too slow")


far_ends = pytest.mark.parametrize("go", [cut, hang_up])
Go = Callable[[ScriptedServer], Any]


@far_ends
async def test_a_connection_without_an_episode_is_replaced_by_the_next_call(go: Go, server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        assert await client.state() == 0
        await go(server)
        await server.until(lambda: server.sessions_open == 0)
        assert await client.state() == 0
        assert (await client.reset()).observation == Count(0)


@far_ends
async def test_an_episode_whose_connection_ended_is_lost_at_once_until_reset(go: Go, server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        await go(server)
        await server.until(lambda: server.sessions_open == 0)
        for call in (client.step, client.step):
            with pytest.raises(EpisodeLost):
                await asyncio.wait_for(call(Add(1)), 5)
        with pytest.raises(EpisodeLost):
            await client.state()
        assert (await client.reset()).observation == Count(0)
        assert (await client.step(Add(1))).observation == Count(1)


@far_ends
async def test_reset_recovers_without_anybody_having_noticed_the_end(go: Go, server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        await go(server)
        assert (await client.reset()).observation == Count(0)


async def test_a_far_end_that_dies_in_mid_step_is_an_error_at_once_and_reset_recovers(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        server.hold_reply()
        stepping = asyncio.ensure_future(client.step(Add(1)))
        await server.until(lambda: len(server.requests) == 2)
        server.cut()
        with pytest.raises(EpisodeLost, match="broke"):
            await asyncio.wait_for(stepping, 5)
        server.release_reply()
        assert (await client.reset()).observation == Count(0)


async def test_the_reason_for_a_loss_is_told_each_time(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        await hang_up(server)
        await server.until(lambda: server.sessions_open == 0)
        told = []
        for _ in range(2):
            with pytest.raises(RuntimeError) as lost:
                await client.step(Add(1))
            told.append(str(lost.value))
    assert told == [
        "The episode is lost: the server closed the connection with code 1011 (too slow)"
    ] * 2


async def test_a_server_that_is_gone_for_good_is_a_connection_error_and_the_episode_stays_lost(server: ScriptedServer) -> None:
    async with ScriptedServer() as mortal:
        client = CountingClient(mortal.url)
        await client.reset()
    with pytest.raises(EpisodeLost):
        await client.step(Add(1))
    for _ in range(2):
        with pytest.raises(ConnectionError, match="Failed to connect to ws://"):
            await client.reset()
        with pytest.raises(EpisodeLost):
            await client.step(Add(1))
    await client.close()


async def test_disconnect_is_a_new_beginning_that_the_user_asked_for(server: ScriptedServer) -> None:
    client = CountingClient(server.url)
    await client.reset()
    await client.step(Add(3))
    await client.disconnect()
    assert await client.state() == 0
    await client.close()
    assert server.close_frames == 2


async def test_no_message_is_sent_twice(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset(seed=1)
        server.cut()
        await server.until(lambda: server.sessions_open == 0)
        with pytest.raises(EpisodeLost):
            await client.step(Add(1))
        await client.reset(seed=2)
    assert [request.frame["type"] for request in server.requests] == ["reset", "reset"]


# Further sessions and closing


class Narrow(CountingClient):
    """A user's class whose constructor takes fewer arguments than its base."""

    def __init__(self, base_url: str, message_timeout_s: float = 7.0) -> None:
        super().__init__(base_url, message_timeout_s=message_timeout_s)


class Wide(CountingClient):
    """One that passes on whatever it is given, and adds something of its own."""

    def __init__(self, colour: str = "red", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.colour = colour


async def test_a_new_session_is_another_connected_client_of_the_same_class(server: ScriptedServer) -> None:
    async with CountingClient(server.url, message_timeout_s=3.0, late_reply_s=2.0, headers={"X": "y"}) as parent:
        child = await parent.new_session()
        assert type(child) is CountingClient and child is not parent
        assert (child._message_timeout, child._late_reply, child._headers) == (3.0, 2.0, {"X": "y"})
        await parent.reset()
        await child.reset()
        await parent.step(Add(1))
        assert ((await child.step(Add(5))).observation, await parent.state()) == (Count(5), 1)


async def test_a_new_session_is_made_with_the_arguments_that_its_class_takes(server: ScriptedServer) -> None:
    async with Narrow(server.url, 3.0) as narrow, Wide(base_url=server.url, headers={"X": "y"}) as wide:
        first, second = await narrow.new_session(), await wide.new_session()
        assert (type(first), first._message_timeout) == (Narrow, 3.0)
        assert (type(second), second.colour, second._headers) == (Wide, "red", {"X": "y"})


async def test_children_are_closed_with_their_parent(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as parent:
        children = [await parent.new_session() for _ in range(3)]
        await children[0].close()
        await server.until(lambda: server.sessions_open == 3)
    await server.until(lambda: server.sessions_open == 0)
    assert server.close_frames == 4


async def test_a_child_that_is_used_again_after_its_close_is_closed_with_its_parent(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as parent:
        child = await parent.new_session()
        await child.close()
        await child.reset()
    await server.until(lambda: server.sessions_open == 0)


async def test_closed_children_are_forgotten(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as parent:
        for _ in range(5):
            await (await parent.new_session()).close()
        assert parent._child_clients == set()


async def test_a_new_session_starts_an_owned_provider_once(server: ScriptedServer) -> None:
    provider = ServerProvider(server.url)
    async with CountingClient(provider=provider) as parent:
        await parent.new_session()
        await parent.close()
        await (await parent.new_session()).reset()
    assert provider.verbs == ["start", "wait_for_ready", "stop"] * 2


async def test_a_session_that_cannot_be_made_stops_the_provider_that_was_started_for_it(server: ScriptedServer) -> None:
    class Broken(CountingClient):
        def __init__(self, provider: Any = None, base_url: str | None = None) -> None:
            if base_url is not None:
                raise LookupError("no children today")
            super().__init__(provider=provider)

    provider = ServerProvider(server.url)
    with pytest.raises(LookupError):
        await Broken(provider).new_session()
    assert provider.verbs == ["start", "wait_for_ready", "stop"]


def close_order(events: list[str]) -> Callable[[ScriptedSession], Any]:
    """A server that notes how each session ends, by the label of its reset."""
    counting = Counting()

    async def converse(session: ScriptedSession) -> None:
        label = "?"
        while (frame := await session.receive()) is not None:
            label = frame["data"].get("label", label)
            await session.send(counting(session.number, frame))
        events.append(f"close frame of {label}")
        await session.websocket.wait_closed()
        events.append(f"end of {label}")

    return converse


@pytest.mark.parametrize("cancelled", [False, True])
async def test_closing_ends_children_then_the_session_then_the_provider(cancelled: bool) -> None:
    events: list[str] = []

    class Noting(ServerProvider):
        def stop(self) -> None:
            events.append("provider stopped")

    async with ScriptedServer(handler=close_order(events)) as server:
        client = CountingClient(provider=Noting(server.url))
        await client.reset(label="parent")
        await (await client.new_session()).reset(label="child")
        closing = asyncio.ensure_future(client.close())
        if cancelled:
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
        else:
            await closing
        await server.until(lambda: server.sessions_open == 0)
    frames = [event for event in events if not event.startswith("end")]
    assert frames == ["close frame of child", "close frame of parent", "provider stopped"]
    assert sorted(events)[:2] == ["close frame of child", "close frame of parent"]


async def test_a_failing_stop_does_not_keep_the_session_open(server: ScriptedServer) -> None:
    client = CountingClient(provider=ServerProvider(server.url, {"stop": RuntimeError("not now")}))
    await client.reset()
    with pytest.raises(RuntimeError, match="not now"):
        await client.close()
    await server.until(lambda: server.sessions_open == 0)


async def test_closing_in_mid_step_takes_a_second_at_most_and_the_step_is_told(server: ScriptedServer) -> None:
    client = CountingClient(server.url)
    await client.reset()
    server.hold_reply()
    stepping = asyncio.ensure_future(client.step(Add(1)))
    await server.until(lambda: len(server.requests) == 2)
    await asyncio.wait_for(client.close(), 3)
    with pytest.raises(EpisodeLost, match="closed by this side"):
        await stepping


async def test_what_a_close_overtakes_is_not_sent_to_a_fresh_environment(server: ScriptedServer) -> None:
    client = CountingClient(server.url)
    await client.reset()
    server.hold_reply()
    calls = [asyncio.ensure_future(call) for call in (client.step(Add(1)), client.step(Add(2)), client.reset())]
    await server.until(lambda: len(server.requests) == 2)
    await client.close()
    for call in calls:
        with pytest.raises(EpisodeLost, match="closed"):
            await call
    assert (server.sessions_opened, len(server.requests)) == (1, 2)


async def test_a_close_in_mid_reset_is_the_end_of_it(server: ScriptedServer) -> None:
    client = CountingClient(server.url)
    await client.reset()
    server.hold_reply()
    resetting = asyncio.ensure_future(client.reset())
    await server.until(lambda: len(server.requests) == 2)
    await client.close()
    with pytest.raises(EpisodeLost, match="closed"):
        await resetting
    assert server.sessions_opened == 1


async def test_closing_while_connecting_ends_both() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(silent, "127.0.0.1", 0)
    client = CountingClient(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", connect_timeout_s=60)
    connecting = asyncio.ensure_future(client.connect())
    await asyncio.sleep(0.02)
    await asyncio.wait_for(client.close(), 3)
    with pytest.raises(EpisodeLost, match="the client was closed meanwhile"):
        await connecting
    listener.close()
    await listener.wait_closed()


async def test_a_script_of_openenvs_frames_is_spoken_word_for_word() -> None:
    script = [
        Turn(observation(count=0), {"type": "reset", "data": {"seed": 3}}),
        Turn(observation(1.0, count=1), {"type": "step", "data": {"add": 1}}),
        Turn({"type": "state", "data": {"count": 1}}, {"type": "state"}),
        Turn(error("EXECUTION_ERROR", "99"), {"type": "step", "data": {"add": 2}}),
        Turn(Wire.ABORT, {"type": "step", "data": {"add": 3}}),
    ]
    async with ScriptedServer(script) as server, CountingClient(server.url) as client:
        await client.reset(seed=3)
        await client.step(Add(1))
        await client.state()
        with pytest.raises(RuntimeError, match=r"^Server error: 99 \(code: EXECUTION_ERROR\)$"):
            await client.step(Add(2))
        with pytest.raises(EpisodeLost):
            await client.step(Add(3))
