"""pool/encoding.py: an environment reads the same, whichever encoder wrote."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.pool.encoding import encode_request

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_what_is_written_is_read_as_with_the_standard_encoder(value: Any) -> None:
    assert repr(json.loads(encode_request(value))) == repr(json.loads(json.dumps(value)))


def test_what_is_no_json_is_refused_as_by_the_standard_encoder() -> None:
    for value in (date(2026, 1, 1), {1, 2}, {"when": date(2026, 1, 1)}):
        with pytest.raises(TypeError, match="not JSON serializable"):
            encode_request(value)
