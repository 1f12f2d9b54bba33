"""Decoding side by side keeps the order, stays a few items ahead, and ends on the first error."""

import pytest

from scalestudy.data.sources.base import digest, files_digest, side_by_side


def test_only_a_few_items_are_taken_ahead():
    taken = []
    results = side_by_side(lambda item: item, (taken.append(item) or item for item in range(1000)))
    assert next(results) == 0
    assert len(taken) < 20
    results.close()


def test_an_error_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda item: 1 // item, [2, 1, 0, 1]))


def test_digests_tell_parts_apart():
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("ab", "c", None)}) == 4


def test_files_count_by_name_size_and_time_not_by_place(tmp_path):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "x").write_text("1")
    first = files_digest(tmp_path / "a", [tmp_path / "a" / "x"])
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    assert files_digest(tmp_path / "a", [tmp_path / "a" / "y"]) != first
