"""Numbers and lists in sentences."""

import pytest

from scalestudy.util.text import count_noun, elide, join_first, join_words, plural


def test_only_one_takes_the_singular():
    assert [plural("worker", count) for count in (0, 1, 2)] == [
        "workers",
        "worker",
        "workers",
    ]


def test_a_noun_may_have_a_plural_of_its_own():
    assert plural("entry", 1, "entries") == "entry"
    assert plural("entry", 2, "entries") == "entries"


def test_a_count_separates_thousands():
    assert count_noun(1, "sample") == "1 sample"
    assert count_noun(1013, "sample") == "1,013 samples"
    assert count_noun(3, "entry", "entries") == "3 entries"


@pytest.mark.parametrize(
    ("names", "joined"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
    ],
)
def test_words_are_joined_with_a_conjunction(names, joined):
    assert join_words(names) == joined
    assert join_words(names, "or") == joined.replace(" and ", " or ")


def test_only_the_first_names_are_shown_and_the_others_counted():
    names = ["a", "b", "c", "d"]
    assert join_first(names, 4) == "a, b, c, d"
    assert join_first(names, 3) == "a, b, c and 1 more"
    assert join_first(names, 2, separator="; ") == "a; b and 2 more"
    assert join_first([], 2) == ""
    assert join_first(["x"] * 2000, 1) == "x and 1,999 more"


def test_an_ellipsis_stands_for_the_names_left_out():
    assert elide(["a", "b"], 2) == "a, b"
    assert elide(["a", "b", "c"], 2) == "a, b, …"
    assert elide([], 2) == ""
