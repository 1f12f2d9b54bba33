"""Checksums in records: no change that means something goes unseen, and people can read the file."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.seals import DEEPEST, BrokenSeal, opened, sealed

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
TABLES = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=8).filter(lambda k: k != "sha256"), VALUES
)


@settings(derandomize=True)
@given(TABLES, st.sampled_from([None, 1, 4]))
def test_what_was_sealed_is_opened_however_it_is_laid_out(table: dict, indent: int | None) -> None:
    assert opened(sealed(json.dumps(table), indent=indent).encode()) == (table, True)


@settings(derandomize=True)
@given(TABLES, TABLES)
def test_another_content_under_the_same_checksum_is_refused(table: dict, other: dict) -> None:
    seal = json.loads(sealed(json.dumps(table)))["sha256"]
    if json.dumps(other, sort_keys=True) == json.dumps(table, sort_keys=True):
        return
    with pytest.raises(BrokenSeal, match="checksum"):
        opened(json.dumps({**other, "sha256": seal}).encode())


def test_an_older_record_has_no_checksum() -> None:
    assert opened(b'{"a": 1}') == ({"a": 1}, False)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"\0" * 100, "no whole JSON"),
        (b'{"a": 1', "no whole JSON"),
        (b"\xff\xfe\x00", "no whole JSON"),
        (b"[1]", "no JSON table"),
        (b"7" * 5000, "no whole JSON"),
        (b'{"a": ' + b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1) + b"}", "nested deeper"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper"),
        (b'{"a": 1, "sha256": 5}', "checksum"),
    ],
)
def test_what_is_no_record_is_refused_with_its_reason(data: bytes, word: str) -> None:
    with pytest.raises(BrokenSeal, match=word):
        opened(data)
