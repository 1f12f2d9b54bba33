import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.config.formula import (
    LONGEST,
    FormulaTerm,
    Range,
    WrongFormula,
    parse_call,
    parse_sum,
)
from scalestudy.config.objectives import LOSSES
from scalestudy.config.operations import KINDS, operations_of

KNOWN = {
    "one": {},
    "two": {
        "alpha": Range(0.3, 0, 10),
        "count": Range(5, 1, 1000),
        "way": Range("up", words=("up", "down")),
    },
}
VALUES = {
    "alpha": st.floats(0, 10, allow_subnormal=False),
    "count": st.integers(1, 1000),
    "way": st.sampled_from(["up", "down"]),
}
PARAMETERS = {"one": st.just({}), "two": st.fixed_dictionaries({}, optional=VALUES)}


@st.composite
def terms(draw):
    name = draw(st.sampled_from(list(KNOWN)))
    weight = draw(st.just(1.0) | st.floats(1e-6, 1e6))
    return FormulaTerm(name, draw(PARAMETERS[name]), weight)


@given(st.lists(terms(), min_size=1, max_size=5), st.sampled_from([" + ", "+", "  +"]))
def test_what_is_written_is_read_back(given_terms, plus):
    assert parse_sum(
        plus.join(str(term) for term in given_terms), KNOWN, "loss"
    ) == tuple(given_terms)


def sum_or_words(text):
    try:
        return parse_sum(text, KNOWN, "loss"), ""
    except WrongFormula as wrong:
        return (), wrong.action


@given(
    st.text(alphabet="onetwalphcu0.5e-+*(),= \n", max_size=30) | st.text(max_size=30)
)
def test_any_text_is_a_sum_or_is_refused(text):
    read, output = sum_or_words(text)
    if read:
        assert all(term.name in KNOWN and 0 < term.weight <= 1e6 for term in read)
        assert parse_sum(" + ".join(str(term) for term in read), KNOWN, "loss") == read
    else:
        assert output.endswith((".", "?"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bce", (FormulaTerm("bce", {}),)),
        ("0.5*bce + dice", (FormulaTerm("bce", {}, 0.5), FormulaTerm("dice", {}))),
        ("bce+2*dice", (FormulaTerm("bce", {}), FormulaTerm("dice", {}, 2.0))),
        ("1e-1 * focal(gamma=+3)", (FormulaTerm("focal", {"gamma": 3.0}, 0.1),)),
        ("dice( smooth = .5 )", (FormulaTerm("dice", {"smooth": 0.5}),)),
        ("dice()", (FormulaTerm("dice", {}),)),
    ],
)
def test_a_sum_is_read(text, expected):
    assert parse_sum(text, LOSSES, "loss") == expected


@pytest.mark.parametrize(
    ("text", "expected", "action"),
    [
        ("dise", "a known loss", "Did you mean `dice`?"),
        (
            "xyz",
            "a known loss",
            "`xyz` is unknown; choose from bce, cross_entropy, focal",
        ),
        (
            "dice(smoth=1)",
            "each parameter of dice once (it has smooth),",
            "Did you mean `smooth`?",
        ),
        (
            "dice(smooth=1, smooth=2)",
            "each parameter of dice once",
            "Did you mean `smooth`?",
        ),
        (
            "focal(gamma=-1)",
            "gamma=a number from 0 to 10 for focal",
            "Correct gamma=-1.",
        ),
        ("focal(gamma=much)", "gamma=a number from 0 to 10", "Correct gamma=much."),
        ("bce +", "a sum of losses", "Correct the formula."),
        ("bce - dice", "a sum of losses", "Correct the formula."),
        ("bce dice", "a sum of losses", "Correct the formula."),
        ("2 bce", "a sum of losses", "Correct the formula."),
        ("0*bce", "weights above 0", "Correct the formula."),
        ("-1*bce", "weights above 0", "Correct the formula."),
        ("focal(gamma=2", "a sum of losses", "Correct the formula."),
        ("", "a sum of losses", "Correct the formula."),
        ("bce; import os", "a sum of losses", "Correct the formula."),
        ("bce" + " " * LONGEST + "+ dice", "a sum of losses", "Correct the formula."),
    ],
)
def test_what_is_none_is_refused_with_what_to_do(text, expected, action):
    with pytest.raises(WrongFormula) as error:
        parse_sum(text, LOSSES, "loss")
    assert error.value.expected.startswith(expected)
    assert error.value.action.startswith(action)


def test_a_metric_is_one_call_without_a_weight():
    assert parse_call("two(count=3)", KNOWN, "metric") == FormulaTerm(
        "two", {"count": 3}
    )
    for text in ("2*one", "one + one"):
        with pytest.raises(WrongFormula):
            parse_call(text, KNOWN, "metric")


def test_whole_numbers_and_words_are_held_to_what_they_may_be():
    for text in ("two(count=1.5)", "two(count=0)", "two(way=left)", "two(way=1)"):
        with pytest.raises(WrongFormula, match="two"):
            parse_call(text, KNOWN, "metric")
    assert not math.isinf(
        parse_call("two(alpha=1e1)", KNOWN, "metric").parameters["alpha"]
    )


def test_a_list_is_read_with_the_defaults_of_what_is_not_said():
    flip, rotate = operations_of("flip, rotate(30)")
    assert (flip.kind, dict(flip.values)) == ("flip", {"way": "horizontal"})
    assert (rotate.kind, rotate["degrees"]) == ("rotate", 30)
    assert operations_of(" ") == ()
    for text in (
        "flip(vertical)",
        'flip("vertical")',
        "flip(way=vertical)",
    ):  # words need no quotes
        assert operations_of(text)[0]["way"] == "vertical"


@given(st.lists(st.sampled_from(list(KINDS)), unique=True, max_size=9))
def test_every_operation_may_stand_without_numbers_in_any_order(kinds):
    assert [item.kind for item in operations_of(", ".join(kinds))] == kinds


@pytest.mark.parametrize(
    ("text", "expected", "action"),
    [
        ("flop", "a known operation", "Did you mean `flip`?"),
        ("rotate(200)", "degrees=a number from 0 to 180", "Correct degrees=200."),
        ("rotate(far)", "degrees=a number from 0 to 180", "Correct degrees=far."),
        ("rotate(True)", "degrees=a number from 0 to 180", "Correct"),
        ("rotate(10**9)", "degrees=a number from 0 to 180", "Correct"),
        (
            "flip(diagonal)",
            "way=horizontal or vertical or both",
            "Correct way=diagonal.",
        ),
        ("rotate(1, 2)", "parameters of rotate", "Correct"),
        ("rotate(1, degrees=2)", "each parameter of rotate once", "Did you mean"),
        ("rotate(angle=2)", "each parameter of rotate once", "Remove angle."),
        ("rotate90(1)", "parameters of rotate90", "Correct"),
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
