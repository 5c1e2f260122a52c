"""Which replies are failures, and what an agent is advised to do about them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testkit import catalog

from openenv_client.errors import EnvironmentFault
from openenv_client.frames import ErrorFrame, Observation, State
from openenv_gateway.sessions.faults import RESET_NEXT, read_reply, require_answer


def frame(kind: str, **data: Any) -> str:
    return json.dumps({"type": kind, "data": data})


def over(**metadata: Any) -> str:
    return frame("observation", observation={"metadata": metadata}, reward=None, done=True, metadata=metadata)


def test_a_reset_that_is_over_at_once_with_an_error_in_its_metadata_is_a_failure() -> None:
    reply = read_reply(over(status="error", error="KEY is not set"), "reset")
    assert reply == ErrorFrame("KEY is not set", "RESET_FAILED", {"message": "KEY is not set", "code": "RESET_FAILED"})


def test_the_metadata_inside_the_observation_will_do() -> None:
    raw = frame("observation", observation={"metadata": {"error": "KEY is not set"}}, reward=None, done=True)
    assert isinstance(read_reply(raw, "reset"), ErrorFrame)


@pytest.mark.parametrize("environment", ["jupyter_env", "coding_tools_env", "terminus_env"])
def test_recorded_environments_fail_their_resets_in_this_way(environment: str) -> None:
    resets = [exchange for exchange in catalog.exchanges(environment) if exchange.send.get("type") == "reset"]
    assert resets
    for exchange in resets:
        reply = read_reply(json.dumps(exchange.recv), "reset")
        assert isinstance(reply, ErrorFrame) and "E2B_API_KEY is not set" in reply.message


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (over(error="lost"), "step"),
        (over(status="lost"), "reset"),
        (over(error=""), "reset"),
        (over(error={"code": 1}), "reset"),
        (frame("observation", observation={"metadata": "error"}, reward=None, done=True), "reset"),
        (frame("observation", observation={}, reward=0.0, done=False, metadata={"error": "a field of the game"}), "reset"),
    ],
)
def test_anything_else_is_an_observation(raw: str, kind: Any) -> None:
    assert isinstance(require_answer(read_reply(raw, kind), kind), Observation)


def test_a_failed_reset_does_not_say_that_the_episode_goes_on() -> None:
    for raw in (over(error="KEY is not set"), frame("error", message="no level", code="EXECUTION_ERROR")):
        with pytest.raises(EnvironmentFault) as fault:
            require_answer(read_reply(raw, "reset"), "reset")
        assert fault.value.next_step == RESET_NEXT


def test_a_failed_step_does() -> None:
    with pytest.raises(EnvironmentFault) as fault:
        require_answer(read_reply(frame("error", message="99", code="EXECUTION_ERROR"), "step"), "step")
    assert fault.value.next_step.endswith("the episode goes on.")


def test_a_state_is_a_state() -> None:
    assert require_answer(read_reply(frame("state", step_count=1), "state"), "state") == State({"step_count": 1})
