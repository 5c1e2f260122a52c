"""Results of an MCP environment's own tools: its content one to one, and nothing of reward, done and notes lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testkit import catalog
from testkit.judges import judged
from testkit.media import base64_of, picture

from openenv_client.frames import JsonObject, Observation
from openenv_gateway.mapping.calls import Outcome, outcome_of
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.results import Notes, call_result
from openenv_gateway.mapping.whole import Whole

FULL = MappingOptions()
HANDLE = "Zr8r2Tt3mJ0mYkq1xkV8Og"
PNG = base64_of(picture())
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
NEXT = "call reset to start the next episode"


def answered(observation: JsonObject, *, reward: float | None = None, done: bool = False, **how: Any) -> JsonObject:
    """The judged result of one call whose reply has this observation."""
    options = how.pop("options", FULL)
    notes = how.pop("notes", Notes())
    return judged(call_result(Observation(observation, reward, done, {}), options, notes, **how))


def returned(content: list[Any], structured: Any = None, **more: Any) -> JsonObject:
    """The observation with a tool's result in it, as fastmcp 2 prints it."""
    result = {"content": content, "structured_content": structured, "data": None, "is_error": False, **more}
    return {"result": result, "error": None}


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def test_recorded_calls_go_through_one_to_one() -> None:
    seen = []
    for exchange in catalog.steps("echo_env"):
        if exchange.send["data"].get("type") == "call_tool" and exchange.recv["data"].get("observation", {}).get("result"):
            observation = exchange.recv["data"]["observation"]
            result = answered(observation)
            seen.append(result["content"])
            assert result["structuredContent"] == {
                "observation": {
                    "result": observation["result"]["structured_content"],
                    "metadata": {},
                    "tool_name": observation["tool_name"],
                },
                "reward": None,
                "done": False,
            }
    assert seen == [[text("hi")], [text('{"message":"hé","length":2}')]]


def test_recorded_tool_errors_are_errors_with_their_type() -> None:
    codes = []
    for exchange in catalog.steps("echo_env"):
        error = exchange.recv["data"].get("observation", {}).get("error")
        if error:
            result = answered(exchange.recv["data"]["observation"], action=exchange.send["data"])
            data = result["_meta"]["openenv/error"]
            assert result["isError"] and data["message"] == error["message"] and data["action"] == exchange.send["data"]
            assert error["error_type"] in result["content"][0]["text"] and error["message"] in result["content"][0]["text"]
            codes.append(data["code"])
    assert set(codes) == {"TOOL_NOT_FOUND", "INVALID_ARGS", "EXECUTION_ERROR"}


@pytest.mark.parametrize(
    "result",
    [
        {"content": [], "structured_content": {"a": 1}, "data": {"b": 2}, "is_error": False},
        {"content": [], "structuredContent": {"a": 1}, "isError": False},
        {"content": [], "data": {"a": 1}},
        {"content": None, "structured_content": None, "data": {"a": 1}},
    ],
)
def test_snake_and_camel_case_and_bare_data_are_read(result: JsonObject) -> None:
    assert outcome_of({"result": result}) == Outcome([], {"a": 1})
    assert answered({"result": result})["structuredContent"]["observation"] == {"result": {"a": 1}}


def test_a_tool_without_a_value_has_its_text_as_value() -> None:
    result = answered(returned([text("one"), text("two")]))
    assert result["structuredContent"]["observation"] == {"result": "one\ntwo"}
    assert result["content"] == [text("one"), text("two")]


def test_a_tool_without_content_shows_structured_content_as_text() -> None:
    result = answered(returned([], {"n": 1}), reward=0.5, done=True)
    assert result["content"] == [text(json.dumps(result["structuredContent"], separators=(",", ":")))]
    nothing = answered(returned([{"type": "text", "text": ""}]))
    assert nothing["content"] == [text('{"observation":{"result":null},"reward":null,"done":false}')]


def test_a_picture_goes_through_and_is_not_repeated() -> None:
    result = answered(returned([{"type": "image", "data": PNG, "mimeType": "image/png", "annotations": None}], {"png": PNG}))
    assert result["content"] == [IMAGE]
    assert result["structuredContent"]["observation"] == {"result": {"png": {"$content": 0}}}


def test_a_picture_in_a_returned_object_is_shown_as_one() -> None:
    value = {"images": [PNG], "text": "x" * 1000}
    result = answered(returned([text(json.dumps(value))], value), reward=1.0)
    pointing = {"images": [{"$content": 1}], "text": "x" * 1000}
    assert json.loads(result["content"][0]["text"]) == pointing
    assert result["structuredContent"]["observation"]["result"] == pointing
    assert result["content"][1:] == [IMAGE, text('{"reward":1.0,"done":false}')]


def test_a_picture_without_content_follows_the_text() -> None:
    result = answered(returned([], {"png": PNG}))
    assert result["content"][1] == IMAGE
    assert result["structuredContent"]["observation"] == {"result": {"png": {"$content": 1}}}


@pytest.mark.parametrize(
    ("reward", "done", "notes", "options", "told"),
    [
        (None, False, Notes(), FULL, None),
        (0.0, False, Notes(), FULL, {"reward": 0.0, "done": False}),
        (0.5, False, Notes(), MappingOptions(reward="hidden"), None),
        (0.5, False, Notes(), MappingOptions(reward="meta"), None),
        (None, True, Notes(), FULL, {"next": NEXT, "done": True}),
        (None, True, Notes(), MappingOptions(exposure="agent"), {"done": True}),
        (None, False, Notes(session_id=HANDLE), FULL, {"session_id": HANDLE, "done": False}),
        (1, False, Notes(notice="Hm."), FULL, {"reward": 1, "notice": "Hm.", "done": False}),
    ],
)
def test_what_the_content_does_not_say_is_said_at_the_end(
    reward: float | None, done: bool, notes: Notes, options: MappingOptions, told: JsonObject | None
) -> None:
    result = answered(returned([text("hi")]), reward=reward, done=done, notes=notes, options=options)
    assert result["content"][0] == text("hi")
    assert [json.loads(block["text"]) for block in result["content"][1:]] == ([] if told is None else [told])


def test_other_fields_of_the_observation_are_kept_and_told() -> None:
    observation = {**returned([text("hi")]), "tool_name": "t", "metadata": {"turn": 2}, "score": None}
    result = answered(observation)
    assert result["structuredContent"]["observation"] == {"result": "hi", "tool_name": "t", "metadata": {"turn": 2}}
    assert json.loads(result["content"][1]["text"]) == {"observation": {"metadata": {"turn": 2}}, "done": False}


def test_a_tools_own_error_is_text_only_and_one_to_one() -> None:
    observation = returned([text("This tool fails on purpose."), IMAGE], {"a": 1}, is_error=True)
    result = answered(observation, reward=-1.0, done=True, notes=Notes(session_id=HANDLE, lane="l"))
    assert result["isError"] is True
    assert result["content"][0] == text("This tool fails on purpose.")
    assert json.loads(result["content"][1]["text"]) == {"reward": -1.0, "next": NEXT, "session_id": HANDLE, "done": True}
    assert len(result["content"]) == 2
    meta = result["_meta"]
    assert (meta["openenv/reward"], meta["openenv/done"], meta["openenv/session"]) == (-1.0, True, "l")
    assert meta["openenv/error"]["code"] == "TOOL_ERROR"
    assert "This tool fails on purpose." in meta["openenv/error"]["cause"]


def test_a_tools_error_without_text_shows_its_value() -> None:
    result = answered({"result": {"content": [IMAGE], "structuredContent": {"why": "no"}, "isError": True}})
    assert result["content"] == [text('{"result":{"why":"no"}}')]


@pytest.mark.parametrize("place", ["visible", "meta"])
def test_a_failed_calls_reward_is_in_meta_unless_it_is_hidden(place: Any) -> None:
    observation = {"result": None, "error": {"error_type": "timeout", "message": ""}}
    result = answered(observation, reward=0.5, options=MappingOptions(reward=place))
    assert result["_meta"]["openenv/reward"] == 0.5
    assert result["_meta"]["openenv/error"]["next_step"].startswith("The tool may still have been carried out")
    hidden = answered({**observation, "reward": 0.5}, reward=0.5, options=MappingOptions(reward="hidden"))
    assert "0.5" not in json.dumps(hidden)


def test_an_odd_error_type_still_has_a_stable_code() -> None:
    for kind, code in (("Rate limit!", "RATE_LIMIT"), ("", "TOOL_ERROR"), ("429", "TOOL_ERROR"), ("é", "TOOL_ERROR")):
        result = answered({"error": {"error_type": kind, "message": None}})
        assert result["_meta"]["openenv/error"]["code"] == code


def test_too_much_content_is_cut_with_a_remark() -> None:
    options = MappingOptions(max_result_bytes=1000)
    whole = Whole(lambda: "openenv://t/latest", 20_000)
    result = answered(returned([text("x" * 5000)], {"result": "x" * 5000}), options=options, whole=whole)
    assert result["content"][0]["text"].endswith("[cut: the first 1000 of 5000 bytes; the whole can be read at openenv://t/latest]")
    cut = {"$cut": {"bytes": 5002, "read": "openenv://t/latest"}}
    assert result["structuredContent"]["observation"]["result"] == {"result": cut}
    structured, printed = whole.parts
    assert json.loads(structured.body)["observation"]["result"] == {"result": "x" * 5000}
    assert (printed.mime_type, printed.body) == ("text/plain", b"x" * 5000)


@pytest.mark.parametrize(
    "observation",
    [
        {"text": "no tool was called"},
        {"result": None, "error": None},
        {"result": "win"},
        {"result": {"score": 1}},
        {"error": "late"},
        {"error": {}},
    ],
)
def test_a_reply_without_a_tools_result_is_shown_as_any_observation(observation: JsonObject) -> None:
    assert outcome_of(observation) is None
    result = answered(observation, reward=0.5)
    assert result["structuredContent"] == {"observation": observation, "reward": 0.5, "done": False}
