"""Observations and states as results: every host finds what it reads, every official model accepts them."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testkit import catalog
from testkit.judges import judged
from testkit.media import base64_of, decoded, picture

from openenv_client.frames import JsonObject, Observation, State
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.results import Notes, call_result, harden, observation_result, parse_frame, state_result
from openenv_gateway.mapping.whole import Whole

FULL = MappingOptions()
NONE = Notes()
HANDLE = "Zr8r2Tt3mJ0mYkq1xkV8Og"
PNG = base64_of(picture())
URI = "openenv://atari/latest"

ANY_TEXT = st.text(st.characters(exclude_categories=()))
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.just(PNG) | st.just("x" * 2000),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=15,
)
FIELDS = st.sampled_from(["text", "reward", "done", "metadata", "screen", "screen_shape", "result", "error"])
OBSERVATIONS = st.builds(
    Observation,
    observation=st.dictionaries(FIELDS | ANY_TEXT, ANY_JSON, max_size=4),
    reward=st.none() | st.booleans() | st.integers() | st.floats(),
    done=st.booleans(),
    metadata=st.just({}) | st.dictionaries(ANY_TEXT, ANY_JSON, max_size=3),
)
OPTIONS = st.builds(
    MappingOptions,
    exposure=st.sampled_from(["full", "agent"]),
    reward=st.sampled_from(["visible", "meta", "hidden"]),
    text=st.sampled_from(["json", "plain"]),
    max_result_bytes=st.sampled_from([1000, 100_000]),
)
NOTES = st.sampled_from(
    [
        NONE,
        Notes(session_id=HANDLE, notice="A session was opened.", episode="e", step=3, lane="l"),
        Notes(late={"tool": "step", "observation": {"text": "b", "png": PNG}, "reward": math.nan, "done": False}),
    ]
)


def place() -> Whole:
    """Room for whatever is cut, at URI."""
    return Whole(lambda: URI, 10**9)


def shown(
    observation: JsonObject, *, reward: float | None = None, done: bool = False, metadata: Any = None, **how: Any
) -> JsonObject:
    """The judged result of one observation."""
    reply = Observation(observation, reward, done, metadata or {})
    options = how.pop("options", FULL)
    notes = how.pop("notes", NONE)
    return judged(observation_result(reply, options, notes, **how))


def texts(result: JsonObject) -> list[str]:
    return [block["text"] for block in result["content"] if block["type"] == "text"]


def test_the_first_block_is_the_json_of_structured_content() -> None:
    result = shown({"board": [[0, 1]], "text": "zwölf"}, reward=0.5)
    expected = {"observation": {"board": [[0, 1]], "text": "zwölf"}, "reward": 0.5, "done": False}
    assert result == {
        "content": [{"type": "text", "text": '{"observation":{"board":[[0,1]],"text":"zwölf"},"reward":0.5,"done":false}'}],
        "structuredContent": expected,
        "isError": False,
        "_meta": {},
    }


def test_the_end_of_an_episode_says_what_to_do_if_the_agent_can() -> None:
    assert shown({}, done=True)["structuredContent"]["next"] == "call reset to start the next episode"
    assert "next" not in shown({}, done=True, options=MappingOptions(exposure="agent"))["structuredContent"]
    assert "next" not in shown({})["structuredContent"]


@pytest.mark.parametrize("reward", [None, 0, 1, -0.5, True])
def test_the_reward_is_where_the_operator_wants_it(reward: float | None) -> None:
    visible = shown({"reward": reward}, reward=reward)
    assert (visible["structuredContent"]["reward"], visible["_meta"]) == (reward, {})
    for options, meta in ((MappingOptions(reward="meta"), {"openenv/reward": reward}), (MappingOptions(reward="hidden"), {})):
        result = shown({"reward": 7}, reward=reward, options=options)
        assert result["_meta"] == meta
        assert "reward" not in result["content"][0]["text"]


@pytest.mark.parametrize(("reward", "name"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_a_reward_without_a_json_form_is_null_and_named_in_meta(reward: float, name: str) -> None:
    result = shown({}, reward=reward)
    assert (result["structuredContent"]["reward"], result["_meta"]) == (None, {"openenv/reward": name})
    assert shown({}, reward=reward, options=MappingOptions(reward="meta"))["_meta"] == {"openenv/reward": name}
    assert shown({}, reward=reward, options=MappingOptions(reward="hidden"))["_meta"] == {}


def test_metadata_is_kept_once_wherever_it_came() -> None:
    metadata = {"truncated": True}
    doubled = shown({"metadata": metadata}, metadata=metadata)
    assert doubled["structuredContent"]["observation"] == {"metadata": metadata} and doubled["_meta"] == {}
    assert shown({"a": 1}, metadata=metadata)["structuredContent"]["observation"] == {"a": 1, "metadata": metadata}
    assert shown({"metadata": {}}, metadata=metadata)["structuredContent"]["observation"] == {"metadata": metadata}
    two = shown({"metadata": {"own": 1}}, metadata=metadata)
    assert two["structuredContent"]["observation"] == {"metadata": {"own": 1}}
    assert two["_meta"] == {"openenv/metadata": metadata}


def test_notes_are_told_to_the_agent_and_to_programs() -> None:
    late = {"tool": "step", "observation": {"text": "b"}, "reward": 1.0, "done": False}
    notes = Notes(HANDLE, "A session was opened.", late, "ep-1", 7, "lane-1")
    result = shown({"text": "a"}, notes=notes)
    assert result["structuredContent"] == {
        "observation": {"text": "a"},
        "reward": None,
        "done": False,
        "session_id": HANDLE,
        "notice": "A session was opened.",
        "late": late,
    }
    assert result["_meta"] == {"openenv/episode": "ep-1", "openenv/step": 7, "openenv/session": "lane-1"}
    meta = shown({"text": "a"}, notes=notes, options=MappingOptions(reward="meta"))["_meta"]
    assert (meta["openenv/reward"], meta["openenv/late_reward"]) == (None, 1.0)


def test_pictures_follow_the_text_and_are_pointed_to() -> None:
    late = {"tool": "step", "observation": {"png": base64_of(picture(colour=(0, 0, 0)))}, "done": False}
    result = shown({"camera_image": PNG, "speed": 3}, notes=Notes(late=late))
    assert result["structuredContent"]["observation"] == {"camera_image": {"$content": 1}, "speed": 3}
    assert result["structuredContent"]["late"]["observation"] == {"png": {"$content": 2}}
    assert [block["type"] for block in result["content"]] == ["text", "image", "image"]
    assert result["content"][1] == {"type": "image", "data": PNG, "mimeType": "image/png"}


def test_the_recorded_atari_screen_becomes_one_picture_with_its_very_pixels() -> None:
    recorded = next(data for data in catalog.observations("atari_env") if "screen" in data["observation"])
    reply = parse_frame(orjson.dumps({"type": "observation", "data": recorded}))
    assert isinstance(reply, Observation)
    result = judged(observation_result(reply, FULL, NONE))
    assert len(orjson.dumps(result["structuredContent"])) < 20_000
    assert [block["type"] for block in result["content"]] == ["text", "image"]
    screen = decoded(result["content"][1])
    assert (screen.format, screen.mode, screen.size) == ("PNG", "RGB", (160, 210))
    assert list(screen.tobytes()) == recorded["observation"]["screen"]
    shown_observation = result["structuredContent"]["observation"]
    assert shown_observation == {**recorded["observation"], "screen": {"$content": 1}}


def test_the_recorded_boards_stay_data() -> None:
    for env in ("connect4_env", "snake_env", "maze_env"):
        for data in catalog.observations(env):
            result = shown(data["observation"], reward=data["reward"], done=data["done"], metadata=data.get("metadata"))
            assert [block["type"] for block in result["content"]] == ["text"]
            assert result["structuredContent"]["observation"] == data["observation"]


@pytest.mark.parametrize("env", catalog.environments())
@pytest.mark.parametrize("options", [FULL, MappingOptions("agent", "meta", "plain", 1000)], ids=["full", "agent"])
def test_every_recorded_reply_is_a_result_that_all_judges_accept(env: str, options: MappingOptions) -> None:
    for frame in catalog.replies(env):
        if frame["type"] not in ("observation", "state"):
            continue
        reply = parse_frame(json.dumps(frame))
        if isinstance(reply, State):
            judged(state_result(reply, options, NONE))
        elif isinstance(reply, Observation):
            judged(observation_result(reply, options, NONE, whole=place()))
            judged(call_result(reply, options, NONE, whole=place()))


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(OBSERVATIONS, OPTIONS, NOTES, st.sampled_from([0, 1500, 10**9]))
def test_any_observation_is_a_result_that_all_judges_accept(
    reply: Observation, options: MappingOptions, notes: Notes, room: int
) -> None:
    hardened = harden(reply)
    assert isinstance(hardened, Observation)
    judged(observation_result(hardened, options, notes, whole=Whole(lambda: URI, room)))
    judged(call_result(hardened, options, notes, whole=Whole(lambda: URI, room)))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(ANY_TEXT, ANY_JSON, max_size=4), OPTIONS, NOTES)
def test_any_state_is_a_result_that_all_judges_accept(state: JsonObject, options: MappingOptions, notes: Notes) -> None:
    hardened = harden(State(state))
    assert isinstance(hardened, State)
    judged(state_result(hardened, options, notes))


def test_a_state_is_told_whole_with_its_notes() -> None:
    late = {"tool": "step", "observation": {}, "reward": 1.0, "done": True}
    result = judged(state_result(State({"step_count": 3}), MappingOptions(reward="meta"), Notes(session_id=HANDLE, late=late)))
    late_told = {"tool": "step", "observation": {}, "done": True}
    assert result["structuredContent"] == {"state": {"step_count": 3}, "session_id": HANDLE, "late": late_told}
    assert json.loads(texts(result)[0]) == result["structuredContent"]
    assert result["_meta"] == {"openenv/late_reward": 1.0}


def test_plain_text_is_the_observations_own() -> None:
    plain = MappingOptions(text="plain")
    result = shown({"prompt": "Guess.", "png": PNG}, reward=0.5, options=plain)
    assert texts(result) == ["Guess.\nreward: 0.5"]
    assert result["structuredContent"]["observation"] == {"prompt": "Guess.", "png": {"$content": 1}}
    assert texts(shown({"a": 1}, options=plain)) == ['{"observation":{"a":1},"reward":null,"done":false}']
    assert texts(judged(state_result(State({"text": "a"}), plain, NONE))) == ['{"state":{"text":"a"}}']


def test_a_reset_that_failed_stays_visible() -> None:
    metadata = {"status": "error", "error": "E2B_API_KEY is not set."}
    for options in (MappingOptions(text="json"), MappingOptions(text="plain")):
        result = shown({"metadata": metadata}, done=True, metadata=metadata, options=options)
        assert result["structuredContent"]["done"] is True
        assert "E2B_API_KEY is not set." in texts(result)[0]


def test_what_is_too_large_is_cut_and_says_where_the_whole_is() -> None:
    options = MappingOptions(max_result_bytes=2000)
    whole = place()
    result = shown({"log": "x" * 5000, "turn": 3}, options=options, whole=whole)
    assert result["structuredContent"]["observation"] == {"log": {"$cut": {"bytes": 5002, "read": URI}}, "turn": 3}
    assert json.loads(texts(result)[0]) == result["structuredContent"]
    (part,) = whole.parts
    assert json.loads(part.body) == {"observation": {"log": "x" * 5000, "turn": 3}, "reward": None, "done": False}
    plain = shown({"log": "x" * 5000}, options=MappingOptions(text="plain", max_result_bytes=2000), whole=place())
    assert texts(plain) == ["x" * 2000 + f"\n[cut: the first 2000 of 5000 bytes; the whole can be read at {URI}]"]
