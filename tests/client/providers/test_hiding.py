"""hiding.py: values of environment variables are not read in a server's output."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from openenv_client.providers.hiding import SHORTEST, Hidden
from openenv_client.providers.output import OutputRing

VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0$"), min_size=SHORTEST, max_size=30)


@given(VALUES, st.text(max_size=20), st.text(max_size=20))
def test_a_value_is_shown_as_its_name_however_it_is_written(value: str, before: str, after: str) -> None:
    hidden = Hidden({"TOKEN": value})
    lines = [line for line in value.splitlines() if len(line) >= SHORTEST]
    for written in (value, repr(value), json.dumps(value), str({"TOKEN": value})):
        shown = hidden(f"{before}{written}{after}")
        assert not any(line in shown for line in lines)


def test_the_rest_of_a_text_stays_as_it_is() -> None:
    hidden = Hidden({"KEY": "sk-0123456789", "LONGER": "sk-0123456789-and-more", "DEBUG": "1", "EMPTY": ""})
    assert hidden("a sk-0123456789-and-more b sk-0123456789 c 1") == "a ${LONGER} b ${KEY} c 1"
    assert Hidden({})("as it is") == "as it is"


def test_every_line_of_a_key_file_is_hidden() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
    shown = Hidden({"KEY": key})(f"cannot parse {key!r}\nnor\n{key}")
    assert "MIIEvQ" not in shown and "hkiG9w" not in shown and shown.startswith("cannot parse '${KEY}\\n${KEY}")


@given(st.integers(1, 60), st.integers(0, 40))
def test_of_a_value_at_the_cut_of_a_ring_nothing_is_shown(keep: int, padding: int) -> None:
    value = "0123456789abcdef"
    ring = OutputRing(keep_bytes=keep, hidden=Hidden({"TOKEN": value}))
    ring.write(f"{'.' * 50}{value}{'.' * padding}".encode())
    assert not any(value[at : at + 2] in ring.tail(5) for at in range(len(value) - 1))
