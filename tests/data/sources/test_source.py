"""Decoding side by side keeps the order, stays a few items ahead, and ends on the first error."""

from scalestudy.data.sources.base import digest, side_by_side


def test_only_a_few_items_are_taken_ahead():
    taken = []
    results = side_by_side(lambda item: item, (taken.append(item) or item for item in range(1000)))
    assert next(results) == 0
    assert len(taken) < 20
    results.close()


def test_digests_tell_parts_apart():
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("ab", "c", None)}) == 4
