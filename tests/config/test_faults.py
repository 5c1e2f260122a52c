"""openenv_gateway.config.faults: what differs from the published schema, in words, with its path; secrets stay secret."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from openenv_gateway.config.faults import Fault, schema_faults
from openenv_gateway_schemas import load

SCHEMA = load("config")
DAY = datetime.date(2026, 11, 29)
ABOVE_0 = "expected a number above 0, got 0"


def in_demo(**options: Any) -> dict[str, Any]:
    return {"environments": {"demo": {"source": "demo", **options}}}


def at_demo(option: str, message: str) -> Fault:
    return ("environments", "demo", option), message


def test_the_examples_of_the_schema_have_no_faults() -> None:
    assert [schema_faults(example) for example in SCHEMA["examples"]] == [[], []]


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"prot": 1}, (("prot",), 'unknown; did you mean "port"?')),
        ({"port": 65536}, (("port",), "expected a whole number of at most 65535, got 65536")),
        ({"allowed_hosts": "a"}, (("allowed_hosts",), 'expected a list, got "a"')),
        ({"allowed_hosts": ["a", ""]}, (("allowed_hosts", "1"), 'expected a text that is not empty, got ""')),
        ({"session_idle_s": math.nan}, (("session_idle_s",), "expected a number, got nan")),
        ({"drain_timeout_s": DAY}, (("drain_timeout_s",), "expected a number of 0 or more, got a date or time")),
        ({"environments": [1]}, (("environments",), "expected a table, got a list")),
        ({"environments": {"demo": {}}}, (("environments", "demo", "source"), "missing")),
        (in_demo(linger_s=-1), at_demo("linger_s", "expected a number of 0 or more, got -1")),
        (in_demo(max_tool_name=99), at_demo("max_tool_name", "expected a whole number of at most 64, got 99")),
        (in_demo(tool_timeout_s={"a": 0}), (("environments", "demo", "tool_timeout_s", "a"), ABOVE_0)),
        (in_demo(memory="much"), at_demo("memory", 'expected a text such as "512m" or "2g", got "much"')),
        (in_demo(read_only="yes"), at_demo("read_only", 'expected true or false, got "yes"')),
        (in_demo(mounts={"data": "x"}), (
            ("environments", "demo", "mounts", "data"), 'expected a text such as "/data", got "data"',
        )),
        (in_demo(mounts={"/data": ""}), (
            ("environments", "demo", "mounts", "/data"), 'expected a text that is not empty, got ""',
        )),
        (in_demo(arguments={"a": math.nan}), (("environments", "demo", "arguments", "a"), "expected a number, got nan")),
        (in_demo(exposure=True), at_demo("exposure", 'expected one of "full", "agent", got true')),
        (in_demo(reset={"a": [DAY]}), (
            ("environments", "demo", "reset", "a", "0"), "expected a JSON value, got a date or time; write it as a text",
        )),
        (in_demo(reset={"a": math.inf}), (("environments", "demo", "reset", "a"), "expected a number, got inf")),
    ],
)  # fmt: skip
def test_one_wrong_thing_is_one_fault(document: dict[str, Any], fault: Fault) -> None:
    assert schema_faults(document) == [fault]


def test_an_unknown_key_that_resembles_nothing_lists_the_known_ones() -> None:
    [(path, message)] = schema_faults(in_demo(zzz=1))
    assert path == ("environments", "demo", "zzz")
    assert message == "unknown; known are " + ", ".join(SCHEMA["$defs"]["environment"]["properties"])


def test_a_name_that_cannot_stand_in_a_url_is_told_with_one_that_can() -> None:
    [(path, message)] = schema_faults({"environments": {"My Game": {"source": "demo"}}})
    assert path == ("environments", "My Game")
    assert message.startswith('the name "My Game" cannot stand in a URL') and message.endswith('"my-game" would do')


SECRETS = st.integers(10**6) | st.floats(1e6, 1e9) | st.lists(st.text("q", min_size=8), min_size=1) | st.just(DAY)


@given(SECRETS)
def test_the_value_of_an_environment_variable_is_never_shown(secret: Any) -> None:
    for document, path in (
        (in_demo(env_vars={"TOKEN": secret}), ("environments", "demo", "env_vars", "TOKEN")),
        (in_demo(env_vars=secret), ("environments", "demo", "env_vars")),
    ):
        [(found, message)] = schema_faults(document)
        assert found == path
        assert str(secret) not in message and "q" not in message and "2026" not in message


def test_an_unknown_key_beside_secrets_does_not_bring_them_out() -> None:
    faults = schema_faults(in_demo(env_vars={"TOKEN": "s3cret"}, env_var={"TOKEN": "s3cret"}, reset=1))
    assert len(faults) == 2 and "s3cret" not in str(faults)


OPTIONS = SCHEMA["$defs"]["environment"]["properties"]
VALID = st.fixed_dictionaries({}, optional={"environments": st.dictionaries(
    st.sampled_from(["a", "c-d"]),
    st.fixed_dictionaries(
        {"source": st.sampled_from(OPTIONS["source"]["examples"])},
        optional={option: st.sampled_from(part["examples"]) for option, part in OPTIONS.items() if option != "source"},
    ),
)})  # fmt: skip
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), lambda one: st.lists(one, max_size=2))
NEAR_MISSES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({}, optional={
    "environments": st.dictionaries(st.sampled_from(["a", "B", "c-d"]), st.fixed_dictionaries({}, optional={
        "source": st.just("demo") | JSON, "step_timeout_s": JSON, "reset": JSON | st.just({}), "env_vars": JSON, "x": JSON,
    }), max_size=2) | JSON,
    "host": JSON, "port": JSON, "allowed_origins": JSON, "extra": JSON,
})  # fmt: skip


@given(NEAR_MISSES | VALID)
def test_a_document_has_faults_exactly_if_the_schema_refuses_it(document: dict[str, Any]) -> None:
    assert bool(schema_faults(document)) is not Draft202012Validator(SCHEMA).is_valid(document)
