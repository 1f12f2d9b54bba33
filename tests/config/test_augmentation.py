import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.config.formula import KINDS, WrongFormula, operations_of


def test_a_list_is_read_with_the_defaults_of_what_is_not_said():
    flip, rotate, scale = operations_of("flip, rotate(30), scale(high=2)")
    assert (flip.kind, dict(flip.values)) == ("flip", {"way": "horizontal"})
    assert (rotate.kind, rotate["degrees"]) == ("rotate", 30)
    assert dict(scale.values) == {"low": 0.8, "high": 2}
    assert operations_of(" ") == ()


@given(st.lists(st.sampled_from(list(KINDS)), unique=True, max_size=9))
def test_every_operation_may_stand_without_numbers_in_any_order(kinds):
    assert [item.kind for item in operations_of(", ".join(kinds))] == kinds


@pytest.mark.parametrize("text", ["flip(vertical)", 'flip("vertical")', "flip(way=vertical)"])
def test_words_need_no_quotes(text):
    assert operations_of(text)[0]["way"] == "vertical"


@given(st.text(max_size=40))
def test_any_other_text_is_refused(text):
    with contextlib.suppress(WrongFormula):
        operations_of(text)


@pytest.mark.parametrize(
    ("text", "expected", "action"),
    [
        ("flop", "a known operation", "Did you mean `flip`?"),
        ("rotate(200)", "degrees=a number from 0 to 180", "Correct degrees=200."),
        ("rotate(far)", "degrees=a number from 0 to 180", "Correct degrees=far."),
        ("rotate(True)", "degrees=a number from 0 to 180", "Correct"),
        ("rotate(10**9)", "degrees=a number from 0 to 180", "Correct"),
        ("flip(diagonal)", "way=horizontal or vertical or both", "Correct way=diagonal."),
        ("elastic(5, 2.5)", "grid=a whole number from 2 to 16", "Correct grid=2.5."),
        ("rotate(1, 2)", "parameters of rotate", "Correct"),
        ("rotate(1, degrees=2)", "each parameter of rotate once", "Did you mean"),
        ("rotate(angle=2)", "each parameter of rotate once", "Remove angle."),
        ("rotate90(1)", "parameters of rotate90", "Correct"),
        ("scale(2, 1)", "scale with low up to high", "Exchange"),
        ("flip, flip", "a list of operations", "Remove the second flip."),
        ("__import__('os').system('x')", "a list of operations", "Correct"),
        ("flip rotate", "a list of operations", "Correct"),
    ],
)
def test_what_is_wrong_is_named(text, expected, action):
    with pytest.raises(WrongFormula) as wrong:
        operations_of(text)
    assert wrong.value.expected.startswith(expected)
    assert wrong.value.action.startswith(action)
