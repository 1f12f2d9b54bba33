import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.study.augmentation import KINDS, MIXING, parsed


def test_a_list_is_read_with_the_defaults_of_what_is_not_said():
    flip, rotate, scale = parsed("flip, rotate(30), scale(high=2)")
    assert (flip.kind, dict(flip.values)) == ("flip", {"way": "horizontal"})
    assert (rotate.kind, rotate["degrees"]) == ("rotate", 30)
    assert dict(scale.values) == {"low": 0.8, "high": 2}
    assert parsed(" ") == ()


@given(st.lists(st.sampled_from([kind for kind in KINDS if kind != MIXING[1]]), unique=True, max_size=9))
def test_every_operation_may_stand_without_numbers_in_any_order(kinds):
    assert [each.kind for each in parsed(", ".join(kinds))] == kinds


@given(st.text(max_size=40))
def test_any_other_text_is_refused_in_words(text):
    assert refusal(text) != ""


@pytest.mark.parametrize("text", ["flip(vertical)", 'flip("vertical")', "flip(way=vertical)"])
def test_words_need_no_quotes(text):
    assert parsed(text)[0]["way"] == "vertical"


def refusal(text):
    """What is said of a text; None of one that is taken."""
    try:
        parsed(text)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flop", "there is flop; did you mean flip?"),
        ("rotate(200)", "rotate with degrees from 0 to 180 (there is 200)"),
        ("rotate('far')", "degrees from 0 to 180"),
        ("rotate(far)", "degrees from 0 to 180"),
        ("flip(diagonal)", "one of horizontal, vertical, both (there is 'diagonal')"),
        ('flip("diagonal")', "one of horizontal, vertical, both (there is 'diagonal')"),
        ("elastic(5, 2.5)", "grid a whole number from 2 to 16"),
        ("rotate(1, 2)", "rotate with degrees, each once"),
        ("rotate(1, degrees=2)", "rotate with degrees, each once"),
        ("rotate(angle=2)", "there is angle"),
        ("rotate90(1)", "nothing in brackets"),
        ("scale(2, 1)", "low up to high"),
        ("flip, flip", "flip twice"),
        ("mixup, cutmix", "one of mixup and cutmix"),
        ("rotate(True)", "degrees from 0 to 180"),
        ("__import__('os').system('x')", "flip, rotate(15)"),
        ("rotate(10**9)", "plain numbers"),
        ("flip rotate", "flip, rotate(15)"),
    ],
)
def test_what_is_wrong_is_named(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        parsed(text)
