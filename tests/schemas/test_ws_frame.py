"""ws_frame against every frame that real servers and their recorder exchanged."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator
from testkit import catalog

import openenv_gateway_schemas as schemas
from openenv_client.frames import JsonObject

SCHEMA = schemas.load("ws_frame")
FRAME = Draft202012Validator(SCHEMA)
REQUEST = Draft202012Validator({"$ref": "#/$defs/request", "$defs": SCHEMA["$defs"]})
REPLY = Draft202012Validator({"$ref": "#/$defs/reply", "$defs": SCHEMA["$defs"]})

PLAYED = [env for env in catalog.environments() if catalog.replies(env)]
MALFORMED = {"INVALID_JSON", "UNKNOWN_TYPE"}


@pytest.mark.parametrize("env", PLAYED)
def test_every_recorded_reply_is_a_reply_frame_and_no_request(env: str) -> None:
    for frame in catalog.replies(env):
        REPLY.validate(frame)
        FRAME.validate(frame)
        assert not REQUEST.is_valid(frame), frame


@pytest.mark.parametrize("env", [env for env in PLAYED if catalog.exchanges(env)])
def test_a_recorded_request_is_a_request_frame_unless_the_server_found_its_envelope_wrong(env: str) -> None:
    for label, sent, reply in catalog.exchanges(env):
        assert REQUEST.is_valid(sent) == FRAME.is_valid(sent) == (not envelope_refused(sent, reply)), label


def envelope_refused(sent: JsonObject, reply: JsonObject) -> bool:
    """Whether the server refused the frame itself, not the action in it: an unknown type, or a fault outside `data`.

    The server locates a fault in the action by the action's own fields, so only a missing `data` and a field beside it are
    faults of the envelope. The oldest server did not know the kind mcp yet.
    """
    data = reply["data"]
    if data.get("code") in MALFORMED and sent.get("type") != "mcp":
        return True
    faults = {error["loc"][0] for error in data.get("errors", ()) if error["loc"]}
    return "data" in faults and "data" not in sent or bool(faults & (sent.keys() - {"type", "data"}))
