"""OpenEnv's frames from the server's side: the recorded answers of real servers to bad frames are the measure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from openenv_client.errors import CapacityReached, EpisodeLost, FactoryFailed, ServerUnreachable
from openenv_gateway.errors import LaneBusy, QueueTimeout, StillOpening
from openenv_gateway.transports.openenv_frames import BadFrame, Frame, failure_frame, parse_frame
from openenv_gateway_schemas import load

CONTRACT = load("ws_frame")
FRAMES = Draft202012Validator(CONTRACT)
REQUESTS = Draft202012Validator({"$ref": "#/$defs/request", "$defs": CONTRACT["$defs"]})


def refused(message: str | bytes) -> tuple[dict[str, Any], bool]:
    with pytest.raises(BadFrame) as caught:
        parse_frame(message)
    frame = json.loads(caught.value.frame)
    FRAMES.validate(frame)
    return frame["data"], caught.value.ends


@pytest.mark.parametrize(
    ("message", "frame"),
    [
        ('{"type": "reset"}', Frame("reset")),
        ('{"type": "reset", "data": {"seed": 1}}', Frame("reset", {"seed": 1})),
        ('{"type": "step", "data": {"x": 1e400}}', Frame("step", {"x": float("inf")})),
        ('{"type": "state"}', Frame("state")),
        ('{"type": "close"}', Frame("close")),
        ('{"type": "mcp", "data": {"method": "tools/list"}}', Frame("mcp", {"method": "tools/list"})),
    ],
)
def test_a_frame_that_servers_take_is_taken(message: str, frame: Frame | None) -> None:
    assert parse_frame(message) == frame
    REQUESTS.validate(json.loads(message))


@pytest.mark.parametrize("message", ["", "{nope", "[" * 100_000, '{"type": "reset"'])
def test_what_is_no_json_is_said_and_the_session_goes_on(message: str) -> None:
    data, ends = refused(message)
    assert (data["code"], data["message"].startswith("Invalid JSON: "), ends) == ("INVALID_JSON", True, False)


@pytest.mark.parametrize("message", [b"\x00", b'{"type": "state"}', "[]", "5", "null"])
def test_binary_frames_and_what_is_no_object_end_the_session_as_on_servers(message: str | bytes) -> None:
    data, ends = refused(message)
    assert (data["code"], ends) == ("SESSION_ERROR", True)


@pytest.mark.parametrize(
    ("kind", "told"), [("fly", "fly"), ("", ""), (5, "5"), (None, "None"), ([], "[]"), ("\ud800", "\ufffd")]
)
def test_an_unknown_type_is_named(kind: object, told: str) -> None:
    data, ends = refused(json.dumps({"type": kind}))
    assert (data["code"], data["message"], ends) == ("UNKNOWN_TYPE", f"Unknown message type: {told}", False)


@pytest.mark.parametrize(
    ("frame", "errors"),
    [
        ({"type": "step"}, [("missing", ["data"])]),
        ({"type": "mcp"}, [("missing", ["data"])]),
        ({"type": "step", "data": 5}, [("dict_type", ["data"])]),
        ({"type": "reset", "data": None}, [("dict_type", ["data"])]),
        ({"type": "state", "data": {}}, [("extra_forbidden", ["data"])]),
        ({"type": "close", "id": 1, "x": 2}, [("extra_forbidden", ["id"]), ("extra_forbidden", ["x"])]),
        ({"type": "step", "data": {}, "id": 7}, [("extra_forbidden", ["id"])]),
    ],
)
def test_field_errors_say_where_and_what(frame: dict[str, Any], errors: list[tuple[str, list[str]]]) -> None:
    data, ends = refused(json.dumps(frame))
    assert (data["code"], data["message"], ends) == ("VALIDATION_ERROR", "Invalid message", False)
    assert [(error["type"], error["loc"]) for error in data["errors"]] == errors
    assert not REQUESTS.is_valid(frame), "the published contract refuses it too"


def test_no_free_place_is_capacity_reached_with_what_the_server_said_of_it() -> None:
    counts = {"active_sessions": 2, "max_sessions": 2}
    waited = QueueTimeout("No session became free", retry_after_s=5, active_sessions=2, max_sessions=2)
    for error in (CapacityReached("full", counts), waited):
        raw, over = failure_frame(error)
        data = json.loads(raw)["data"]
        assert (data["code"], over) == ("CAPACITY_REACHED", True)
        assert {key: data[key] for key in counts} == counts
    assert "max_sessions" not in json.loads(failure_frame(QueueTimeout("full", retry_after_s=5))[0])["data"]


@pytest.mark.parametrize(
    ("error", "code", "over"),
    [
        (FactoryFailed("no ROM", {"factory_name": "Atari"}), "FACTORY_ERROR", True),
        (EpisodeLost("the connection broke"), "SESSION_ERROR", True),
        (ServerUnreachable("http://x", "refused"), "SESSION_ERROR", True),
        (LaneBusy("17 calls wait"), "EXECUTION_ERROR", False),
        (StillOpening("still starting"), "EXECUTION_ERROR", False),
    ],
)
def test_each_failure_has_its_code_its_cause_and_what_to_do(error: Exception, code: str, over: bool) -> None:
    raw, ends = failure_frame(error)
    frame = json.loads(raw)
    FRAMES.validate(frame)
    assert (frame["data"]["code"], ends) == (code, over)
    assert len(frame["data"]["message"].split(". ")) > 1, "the cause and the next step"
