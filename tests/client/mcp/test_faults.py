from __future__ import annotations

from typing import Any

import pytest

from openenv_client import errors
from openenv_client.mcp.faults import late_reply, result_failure, rpc_failure
from openenv_client.mcp.peer import RpcFault
from openenv_gateway import errors as gateway
from openenv_gateway.mapping.causes import DESCRIBE
from openenv_gateway.mapping.failures import error_data, failure_of, failure_result
from openenv_gateway.mapping.notes import Notes

COUNTS = {"active_sessions": 2, "max_sessions": 2}
NONE_FREE = gateway.QueueTimeout("none free", retry_after_s=1, active_sessions=2, max_sessions=2)
GOES_ON, LOST, REFUSED = errors.EnvironmentFault, errors.EpisodeLost, errors.SessionRefused

# Every error that the gateway tells, as it tells it, and the class that user code then catches.
CASES: list[tuple[Exception, type[Exception], str]] = [
    (errors.EnvironmentFault("99", "EXECUTION_ERROR"), GOES_ON, "Server error: 99 (code: EXECUTION_ERROR)"),
    (errors.EnvironmentFault("no level", "RESET_FAILED"), GOES_ON, "Server error: no level (code: RESET_FAILED)"),
    (gateway.EpisodeOver("The episode is over"), GOES_ON, "Server error: The episode is over (code: EPISODE_OVER)"),
    (gateway.LaneBusy("17 calls wait"), GOES_ON, "17 calls wait"),
    (gateway.StillOpening("still opening"), GOES_ON, "still opening"),
    (ValueError("secret"), GOES_ON, "code: INTERNAL_ERROR"),
    (gateway.InvalidArguments("at x: no"), errors.InvalidArguments, "Server error: at x: no (code: INVALID_ARGUMENTS)"),
    (gateway.UnknownTool("no tool x"), errors.InvalidArguments, "no tool x"),
    (errors.EpisodeLost("it broke"), LOST, "The episode is lost: it broke"),
    (gateway.UnknownHandle("No session 'x'"), LOST, "The episode is lost: No session 'x'"),
    (gateway.HandleRequired("Which session?"), LOST, "Which session?"),
    (errors.BadReply("reward", "a text"), LOST, "reward is a text"),
    (errors.CapacityReached("full", COUNTS), errors.CapacityReached, "Server error: full (code: CAPACITY_REACHED)"),
    (NONE_FREE, errors.CapacityReached, "Server error: none free (code: CAPACITY_REACHED)"),
    (errors.FactoryFailed("no ROM", {}), errors.FactoryFailed, "Server error: no ROM (code: FACTORY_ERROR)"),
    (errors.SessionRefused("attached twice", "SESSION_ERROR", {}), GOES_ON, "attached twice (code: SESSION_ERROR)"),
    (errors.ServerUnreachable("http://h", "refused"), REFUSED, "http://h: refused (code: SERVER_UNREACHABLE)"),
    (errors.LaunchFailed("chess", "it ended", "no license"), REFUSED, "chess failed: it ended (code: LAUNCH_FAILED)"),
    (errors.LaunchTimeout("chess", "too slow"), REFUSED, "(code: LAUNCH_TIMEOUT)"),
    (errors.NotAnEnvironment("http://h", "no /schema"), REFUSED, "no /schema"),
    (errors.WebSocketRefused("http://h", 403), REFUSED, "HTTP 403"),
    (gateway.Draining("The gateway is stopping"), REFUSED, "is stopping (code: DRAINING)"),
    (gateway.UnusableSchema("$ref leads elsewhere"), REFUSED, "$ref leads elsewhere"),
    (errors.ReplyTimeout("step", 60), errors.ReplyTimeout, "No reply to step within 2.5 s"),
]


@pytest.mark.parametrize(("error", "kind", "words"), CASES, ids=lambda value: type(value).__name__)
def test_each_error_of_the_gateway_becomes_ours_with_its_words_and_next_step(
    error: Exception, kind: type[Exception], words: str
) -> None:
    found = result_failure(failure_result(failure_of(error, action={"a": 1})), "step", 2.46)
    assert type(found) is kind and words in str(found)
    assert found.next_step == failure_of(error).next_step


def test_every_class_that_the_gateway_has_words_for_is_among_the_cases() -> None:
    left = {errors.OpenEnvError, gateway.GatewayError, gateway.ConfigError, gateway.PreviousActionLate}
    assert {kind for kind in DESCRIBE if kind not in left} <= {type(error) for error, _, _ in CASES}


def test_a_refusal_for_want_of_a_place_says_how_many_there_are() -> None:
    for error in (errors.CapacityReached("full", COUNTS), NONE_FREE):
        found = result_failure(failure_result(failure_of(error)), "reset", 0)
        assert isinstance(found, errors.CapacityReached)
        assert (found.active_sessions, found.max_sessions, found.retryable) == (2, 2, True)


def test_field_errors_stay_with_the_fault() -> None:
    error = errors.EnvironmentFault("Invalid", "VALIDATION_ERROR", [{"loc": ["x"], "msg": "bad", "input": 1}])
    found = result_failure(failure_result(failure_of(error)), "step", 0)
    assert isinstance(found, GOES_ON) and found.errors == ({"path": "x", "message": "bad", "found": 1},)


def test_an_error_of_the_protocol_with_the_gateways_data_is_read_like_a_result() -> None:
    data = error_data(failure_of(gateway.UnknownTool("There is no tool 'x'")))
    found = rpc_failure(RpcFault(200, "There is no tool 'x'", -32602, data), "step", 0)
    assert isinstance(found, errors.InvalidArguments) and found.code == "UNKNOWN_TOOL"


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (RpcFault(401, "a token is needed"), PermissionError, "refused step: a token is needed"),
        (RpcFault(403, "not yours", -32600), PermissionError, "not yours"),
        (RpcFault(404, "Unknown or expired Mcp-Session-Id", -32600), LOST, "Mcp-Session-Id"),
        (RpcFault(404, "Method not found: x", -32601), GOES_ON, "(code: MCP -32601)"),
        (RpcFault(413, "HTTP 413: too large"), GOES_ON, "(code: MCP 413)"),
        (RpcFault(502, "HTTP 502: bad gateway"), LOST, "its outcome is unknown"),
        (RpcFault(503, "HTTP 503: stopping"), REFUSED, "stopping"),
        (RpcFault(200, "odd", -32603, {"code": 7}), GOES_ON, "odd"),
    ],
)
def test_what_is_answered_without_the_gateways_data_is_told_by_status_and_code(
    fault: RpcFault, kind: type[Exception], words: str
) -> None:
    found = rpc_failure(fault, "step", 0)
    assert type(found) is kind and words in str(found)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"isError": True, "content": [{"type": "text", "text": "no luck"}]}, "no luck"),
        ({"isError": True, "content": [], "_meta": None}, "without words"),
    ],
)
def test_a_failure_that_is_only_words_is_told_in_them(result: dict[str, Any], words: str) -> None:
    found = result_failure(result, "step", 0)
    assert isinstance(found, GOES_ON) and words in str(found) and found.code == "TOOL_ERROR"


def test_a_late_outcome_comes_as_what_it_was() -> None:
    seen = {"observation": {"n": 1}, "reward": 0.5, "done": True}
    told = late_reply({"tool": "say", **seen})
    assert (told.what, told.payload) == ("step", seen)
    failed = late_reply({"tool": "reset", "error": {"code": "EXECUTION_ERROR", "message": "boom"}})
    assert (failed.what, failed.payload, str(failed.__cause__)) == (
        "reset", None, "Server error: boom (code: EXECUTION_ERROR)"
    )  # fmt: skip


def test_an_action_that_was_not_executed_for_a_late_outcome_is_a_late_reply() -> None:
    notes = Notes(late={"tool": "step", "observation": {"n": 1}, "reward": None, "done": False})
    result = failure_result(failure_of(gateway.PreviousActionLate("late")), notes)
    result["_meta"]["openenv/late"] = notes.late
    found = result_failure(result, "step", 0)
    assert isinstance(found, errors.LateReply)
    assert found.payload == {"observation": {"n": 1}, "reward": None, "done": False}
