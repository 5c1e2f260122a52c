"""Every error of both trees in words: code, cause, what belongs to it, next step; nothing of our insides."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from testkit.judges import judged
from testkit.media import base64_of, picture

import openenv_gateway_schemas as schemas
from openenv_client import errors as environment
from openenv_client.frames import JsonObject
from openenv_gateway import errors as gateway
from openenv_gateway.mapping.failures import (
    Failure,
    error_data,
    failure_of,
    failure_result,
    failure_text,
    protocol_code,
    reported_failure,
    tool_failure,
)
from openenv_gateway.mapping.notes import Notes
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.replies import MAX_DEPTH
from openenv_gateway.mapping.whole import Whole

ACTION = {"action_id": 99}
SCHEMA = Draft202012Validator(schemas.load("error_data"))
ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates included
BUSY = {"active_sessions": 8, "max_sessions": 8}
PYDANTIC = {
    "type": "extra_forbidden",
    "loc": ["moves", 0, "zzz"],
    "msg": "Extra inputs are not permitted",
    "input": 1,
    "url": "https://errors.example/2/v",
}

# One error of each class: what makes it, words that its cause must have, its details.
CASES: dict[type[Exception], tuple[Callable[[], Exception], tuple[str, ...], JsonObject]] = {
    environment.OpenEnvError: (lambda: environment.OpenEnvError("Something happened."), ("Something happened.",), {}),
    environment.ServerUnreachable: (
        lambda: environment.ServerUnreachable("http://h:1", "connection refused"),
        ("http://h:1", "connection refused"),
        {},
    ),
    environment.ConnectFailed: (
        lambda: environment.ConnectFailed("http://h:1", environment.NotAnEnvironment("http://h:1", "no /health")),
        ("Failed to connect to http://h:1", "no /health"),
        {},
    ),
    environment.NotAnEnvironment: (lambda: environment.NotAnEnvironment("http://h:1", "no /health"), ("no /health",), {}),
    environment.WebSocketRefused: (lambda: environment.WebSocketRefused("ws://h:1/ws", 403), ("HTTP 403",), {}),
    environment.SessionRefused: (
        lambda: environment.SessionRefused("attached twice", "SESSION_ERROR", {}),
        ("refused a session", "attached twice", "Nothing was sent"),
        {},
    ),
    environment.CapacityReached: (
        lambda: environment.CapacityReached("full", BUSY),
        ("no free session: all 8 are in use", "Nothing was sent"),
        {"retry_after_s": 5.0, **BUSY},
    ),
    environment.FactoryFailed: (
        lambda: environment.FactoryFailed("Environment factory 'make' failed.", {}),
        ("could not build its environment", "Environment factory 'make' failed. Nothing was sent."),
        {},
    ),
    environment.EnvironmentFault: (
        lambda: environment.EnvironmentFault("Invalid action_id: 99. Valid range: [0, 5]", "EXECUTION_ERROR"),
        ("Invalid action_id: 99. Valid range: [0, 5]",),
        {"action": ACTION},
    ),
    environment.InvalidArguments: (
        lambda: environment.InvalidArguments("column is 9."),
        ("column is 9.",),
        {"action": ACTION},
    ),
    environment.ReplyTimeout: (
        lambda: environment.ReplyTimeout("step", 60),
        ("No reply to step within 60 s", "was sent", "outcome is unknown", "the next call of this session tells it"),
        {"action": ACTION},
    ),
    environment.ReplyOwed: (lambda: environment.ReplyOwed("step"), ("still owes", "nothing was sent"), {}),
    environment.LateReply: (lambda: environment.LateReply("step", {}), ("previous step finished late", "was not sent"), {}),
    environment.ToolFailed: (
        lambda: environment.ToolFailed("fly", "no such tool", "tool_not_found"),
        ("'fly' failed", "no such tool", "tool_not_found"),
        {},
    ),
    environment.EpisodeLost: (lambda: environment.EpisodeLost("the server died"), ("lost: the server died",), {}),
    environment.BadReply: (lambda: environment.BadReply("reward", "str"), ("reward is str",), {"action": ACTION}),
    environment.ProviderError: (lambda: environment.ProviderError("no such image"), ("no such image",), {}),
    environment.LaunchFailed: (
        lambda: environment.LaunchFailed("chess", "it exited with 1", "Traceback\nKeyError: 'x'"),
        ("Launching chess failed: it exited with 1",),
        {"log": "Traceback\nKeyError: 'x'"},
    ),
    environment.LaunchTimeout: (
        lambda: environment.LaunchTimeout("chess", "no /health within 120 s"),
        ("Launching chess failed: no /health within 120 s",),
        {},
    ),
    gateway.GatewayError: (lambda: gateway.GatewayError("It happened.", next_step="Do this."), ("It happened.",), {}),
    gateway.UnknownTool: (lambda: gateway.UnknownTool("There is no tool fly."), ("There is no tool fly.",), {}),
    gateway.InvalidArguments: (
        lambda: gateway.InvalidArguments("column is 9.", errors=[{"path": "column", "expected": "at most 6", "found": 9}]),
        ("column is 9.",),
        {"errors": [{"path": "column", "expected": "at most 6", "found": 9}]},
    ),
    gateway.UnknownHandle: (lambda: gateway.UnknownHandle("Nobody has that session_id."), ("Nobody has that",), {}),
    gateway.HandleRequired: (lambda: gateway.HandleRequired("Which session?"), ("Which session?",), {}),
    gateway.EpisodeOver: (lambda: gateway.EpisodeOver("The episode is over."), ("The episode is over.",), {}),
    gateway.PreviousActionLate: (
        lambda: gateway.PreviousActionLate("Your previous action finished late."),
        ("finished late",),
        {"action": ACTION},
    ),
    gateway.StillOpening: (lambda: gateway.StillOpening("An earlier call is still opening."), ("still opening",), {}),
    gateway.LaneBusy: (lambda: gateway.LaneBusy("16 calls wait."), ("16 calls wait.",), {"retry_after_s": 1.0}),
    gateway.QueueTimeout: (
        lambda: gateway.QueueTimeout("No session became free within 60 s.", retry_after_s=7.5, active_sessions=3),
        ("within 60 s",),
        {"retry_after_s": 7.5, "active_sessions": 3},
    ),
    gateway.Draining: (lambda: gateway.Draining("The gateway is stopping."), ("is stopping",), {"retry_after_s": 10.0}),
    gateway.UnusableSchema: (lambda: gateway.UnusableSchema("$ref leads elsewhere."), ("$ref leads elsewhere.",), {}),
    gateway.ConfigError: (
        lambda: gateway.ConfigError("g.toml", ["port: a string", "host: empty"]),
        ("g.toml: 2 faults",),
        {"errors": [{"message": "port: a string"}, {"message": "host: empty"}]},
    ),
}


def tree(root: type[Exception]) -> Iterator[type[Exception]]:
    """The class and its subclasses that live beside it."""
    yield root
    for child in root.__subclasses__():
        if child.__module__ == root.__module__:
            yield from tree(child)


def told(failure: Failure, notes: Notes = Notes(), **how: Any) -> str:  # noqa: B008  (frozen)
    """The one text of the judged result."""
    result = judged(failure_result(failure, notes, **how))
    assert result["isError"] and result["_meta"]["openenv/error"] == json.loads(json.dumps(error_data(failure)))
    return str(result["content"][0]["text"])


def fault(message: str, code: str = "EXECUTION_ERROR", errors: Any = ()) -> Failure:
    return failure_of(environment.EnvironmentFault(message, code, errors), action=ACTION)


def test_every_class_of_both_trees_has_its_case() -> None:
    assert {*tree(environment.OpenEnvError), *tree(gateway.GatewayError)} == set(CASES)


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_each_error_says_what_happened_why_and_what_to_do(kind: type[Exception]) -> None:
    make, words, details = CASES[kind]
    error: Any = make()
    failure = failure_of(error, action=ACTION)
    assert (failure.code, failure.retryable, failure.next_step) == (error.code, error.retryable, error.next_step)
    assert failure.details == details
    text = told(failure)
    assert text == failure_text(failure)
    assert text.startswith(f"{failure.code}: ") and text.endswith(f"Next: {failure.next_step}")
    assert [word for word in words if word not in failure.cause or word not in text] == []


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_error_data_follows_its_schema_with_and_without_an_action(kind: type[Exception]) -> None:
    for action in (None, ACTION):
        SCHEMA.validate(error_data(failure_of(CASES[kind][0](), action=action)))


@pytest.mark.parametrize("said", ["99", "'text'", '"key with blanks"', "", "boom!"])
def test_a_bare_text_gets_the_action_beside_it(said: str) -> None:
    failure = fault(said)
    assert failure.cause == f"The environment answered with an error and said no more than: {said or 'nothing'}"
    assert 'Action: {"action_id":99}' in told(failure)
    assert failure.message == said


def test_field_errors_are_listed_with_path_message_and_finding() -> None:
    failure = fault("Invalid message", "VALIDATION_ERROR", [PYDANTIC, {"msg": "bad"}, {}, "odd"])
    assert failure.details["errors"] == [
        {"path": "moves.0.zzz", "message": "Extra inputs are not permitted", "found": 1},
        {"path": "", "message": "bad"},
        {"path": "", "message": "not valid"},
        {"message": "odd"},
    ]
    assert '- {"path":"moves.0.zzz","message":"Extra inputs are not permitted","found":1}' in told(failure)


def test_many_field_errors_are_bounded() -> None:
    failure = fault("Invalid message", "VALIDATION_ERROR", [{**PYDANTIC, "input": "x" * 100_000}] * 50)
    assert len(failure.details["errors"]) == 20
    assert len(told(failure)) < 40_000
    assert failure.details["errors"][0]["found"]["$cut"]["bytes"] == 100_002


@pytest.mark.parametrize(
    ("code", "of_fault", "of_refusal"),
    [
        ("execution error", "EXECUTION_ERROR", "EXECUTION_ERROR"),
        ("", "ENVIRONMENT_ERROR", "SESSION_REFUSED"),
        ("42", "ENVIRONMENT_ERROR", "SESSION_REFUSED"),
    ],
)
def test_an_environments_code_is_brought_into_the_form_of_ours(code: str, of_fault: str, of_refusal: str) -> None:
    assert fault("a b", code).code == of_fault
    assert failure_of(environment.SessionRefused("no", code, {})).code == of_refusal


def test_capacity_without_numbers_names_none() -> None:
    failure = failure_of(environment.CapacityReached("full", {}))
    assert failure.cause == "The environment server has no free session. Nothing was sent."
    assert "Try again in 5 s." in told(failure)


def test_a_long_log_is_told_from_its_end_and_from_a_whole_line() -> None:
    log = "\n".join(f"line {at}: {'é' * 50}" for at in range(1000))
    failure = failure_of(environment.LaunchFailed("chess", "it died", log))
    lines = failure.details["log"].splitlines()
    assert lines[0].startswith("[cut: the last 4000 of ")
    assert lines[1].startswith("line ") and lines[-1].startswith("line 999:")
    assert "Last lines of the server's log:\n[cut" in told(failure)
    one_line = failure_of(environment.LaunchFailed("chess", "it died", "x" * 9000)).details["log"]
    assert one_line.splitlines()[1] == "x" * 4000


def test_a_broken_factory_of_a_launched_server_is_told_with_its_log_which_nobody_else_sees() -> None:
    error = environment.FactoryFailed("Environment factory 'make' failed.", {})
    error.log = "RuntimeError: no level file"
    assert failure_of(error).details == {"log": "RuntimeError: no level file"}
    assert "Last lines of the server's log:\nRuntimeError: no level file" in told(failure_of(error))


def test_an_action_is_bounded_in_size_and_depth() -> None:
    large = failure_of(environment.EnvironmentFault("99", "X"), action={"code": "x" * 9000, "n": 1})
    assert large.details["action"]["n"] == 1
    assert large.details["action"]["code"]["$cut"]["bytes"] == 9002
    deep: JsonObject = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert failure_of(environment.EnvironmentFault("99", "X"), action=deep).details["action"] == {
        "$cut": {"deeper_than_levels": MAX_DEPTH}
    }


def test_an_error_without_words_is_told_by_its_class() -> None:
    assert failure_of(gateway.GatewayError("")).cause == "GatewayError"
    assert "\n" not in failure_of(environment.OpenEnvError()).cause


def test_a_lost_episode_says_what_was_lost() -> None:
    failure = failure_of(environment.EpisodeLost("the server died"))
    assert "Lost: episode ep-1, 7 steps in it." in told(failure, Notes(episode="ep-1", step=7))
    assert "Lost: 1 step in it." in told(failure, Notes(step=1))
    assert "Lost:" not in told(failure)
    assert "Lost:" not in told(fault("99"), Notes(episode="ep-1", step=7))


def test_an_unexpected_exception_tells_nothing_of_our_insides() -> None:
    failure = failure_of(KeyError("/home/me/secret"), action=ACTION)
    assert (failure.code, failure.retryable) == ("INTERNAL_ERROR", False)
    assert not {"secret", "KeyError", "home"} & set(told(failure).replace("/", " ").split())
    SCHEMA.validate(error_data(failure))


def test_a_subclass_is_told_as_its_nearest_base() -> None:
    class Special(environment.LaunchFailed):
        code = "SPECIAL"

    failure = failure_of(Special("chess", "it died", "last words"))
    assert (failure.code, failure.details) == ("SPECIAL", {"log": "last words"})


def test_only_an_unknown_tool_is_a_fault_of_the_protocol() -> None:
    codes = {kind: protocol_code(failure_of(make())) for kind, (make, _, _) in CASES.items()}
    assert {kind for kind, code in codes.items() if code is not None} == {gateway.UnknownTool}
    assert codes[gateway.UnknownTool] == -32602


def test_a_late_outcome_is_told_in_the_failures_text_and_its_picture_follows() -> None:
    png = base64_of(picture())
    late = {"tool": "step", "observation": {"text": "b", "png": png, "reward": 1.0}, "reward": 1.0, "done": True}
    failure = failure_of(gateway.PreviousActionLate("Your previous action finished late."), action=ACTION)
    shown = {"tool": "step", "done": True, "observation": {"text": "b", "png": {"$content": 1}}}
    result = judged(failure_result(failure, Notes(late=late, lane="l"), options=MappingOptions(reward="meta")))
    assert f"late: {json.dumps(shown, separators=(',', ':'))}" in result["content"][0]["text"].splitlines()
    assert result["content"][1:] == [{"type": "image", "data": png, "mimeType": "image/png"}]
    assert (result["_meta"]["openenv/late_reward"], result["_meta"]["openenv/session"]) == (1.0, "l")
    assert '"reward":1.0' in told(failure, Notes(late=late))


def test_a_late_outcome_that_is_too_large_says_where_it_can_be_read() -> None:
    late = {"tool": "step", "observation": {"log": "x" * 50_000}, "done": False}
    whole = Whole(lambda: "openenv://latest", 60_000)
    text = told(failure_of(gateway.PreviousActionLate("Late.")), Notes("h", "A note.", late), whole=whole)
    assert '{"log":{"$cut":{"bytes":50002,"read":"openenv://latest"}}}' in text
    assert {"session_id: h", "notice: A note."} <= set(text.splitlines())


def test_a_tools_failure_has_its_type_as_code() -> None:
    failure = tool_failure({"error_type": "invalid_args", "message": "column is missing"}, ACTION)
    assert failure == Failure(
        code="INVALID_ARGS",
        message="column is missing",
        cause="The environment's tool call failed (invalid_args): column is missing",
        retryable=False,
        next_step="Correct the arguments and call again; the episode goes on.",
        details={"action": ACTION},
    )
    assert tool_failure({}).cause == "The environment's tool call failed (no type): no message"
    assert reported_failure("No.").cause == "The tool reported an error: No."


@given(ANY_TEXT, ANY_TEXT, st.none() | st.just(ACTION))
def test_whatever_a_server_says_can_be_told(message: str, code: str, action: JsonObject | None) -> None:
    errors = [{"loc": [message], "msg": message, "input": {message: float("nan"), "n": 2**80}}]
    for error in (
        environment.EnvironmentFault(message, code, errors),
        environment.SessionRefused(message, code, {}),
        environment.LaunchFailed(message, code, message),
        environment.OpenEnvError(message),
    ):
        told(failure_of(error, action=action))
    told(tool_failure({"error_type": code, "message": message}, action))
