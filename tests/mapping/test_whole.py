"""What was cut is collected for whoever keeps it, as far as there is room."""

from __future__ import annotations

from openenv_gateway.mapping.whole import JSON, TEXT, Part, Whole, kept


def test_a_place_is_asked_for_once_and_only_when_something_is_cut() -> None:
    asked: list[str] = []

    def place() -> str:
        asked.append("openenv://a/latest/k/1")
        return asked[-1]

    whole = Whole(place, 100)
    assert asked == []
    assert [whole.add(Part(JSON, b"{}")), whole.add(Part(TEXT, b"x"))] == ["openenv://a/latest/k/1"] * 2
    assert len(asked) == 1


def test_what_does_not_fit_is_told_nowhere_and_what_fits_still_is() -> None:
    whole = Whole(lambda: "u", 10)
    assert [whole.add(Part(TEXT, b"x" * size)) for size in (6, 5, 4)] == ["u", None, "u"]
    assert [len(part.body) for part in whole.parts] == [6, 4]


def test_without_anybody_to_keep_it_a_part_can_be_read_nowhere() -> None:
    assert kept(None, Part(TEXT, b"x")) is None
    assert kept(Whole(lambda: "u", 1), Part(TEXT, b"x")) == "u"


def test_a_part_is_shown_as_what_it_was() -> None:
    assert Part(JSON, b'{"a":1}').contents("u") == {"uri": "u", "mimeType": JSON, "text": '{"a":1}'}
    assert Part("audio/wav", b"QUJD", is_blob=True).contents("u") == {"uri": "u", "mimeType": "audio/wav", "blob": "QUJD"}
