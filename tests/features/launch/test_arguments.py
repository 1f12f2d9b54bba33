"""Expressions in the arguments of a script."""

import pytest

from scalestudy.features.launch.arguments import fill_arguments
from scalestudy.util.errors import UserError


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ("{16*workers}", "64"),
        ("--lr={0.001*workers}", "--lr=0.004"),
        ("{ 64 // workers + -seed }", "14"),
        ("{workers**0.5}", "2"),
        ("log_{workers}_{seed}.csv", "log_4_2.csv"),
        ("weights.{epoch:02d}.h5", "weights.{epoch:02d}.h5"),
        ("{epoch}", "{epoch}"),
        ('{"a": 1}', '{"a": 1}'),
        ("{}", "{}"),
        ("{3+4}", "{3+4}"),
    ],
)
def test_an_expression_of_the_workers_is_filled_and_other_braces_stay(given, filled):
    assert fill_arguments(["--x", given], workers=4, seed=2) == ["--x", filled]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{16*worker}", "workers"),
        ("{batch*workers}", "batch has no value"),
        ("{workers/0}", "division by zero"),
        ("{workers.real}", "no arithmetic"),
        ("{__import__('os').system(workers)}", "__import__"),
        ("{9**9**9*workers}", "too large"),
        ("{workers**1000000}", "too large"),
    ],
)
def test_an_expression_without_a_value_is_refused_and_never_run_as_python(given, said):
    with pytest.raises(UserError, match=said):
        fill_arguments([given], workers=4, seed=2)
