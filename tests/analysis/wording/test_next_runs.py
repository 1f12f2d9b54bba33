"""Each reason of the search for the next runs has words, with the rows and figures that it names."""

from typing import get_args

import pytest

from scalestudy.analysis.next_runs import Why, WhyEnded, WhyNext
from scalestudy.analysis.runs import key_of
from scalestudy.analysis.wording.next_runs import describe_why

KINDS = (*get_args(WhyNext), *get_args(WhyEnded))
ROWS = (key_of("horovod", 4, {}), key_of("native", 8, {}))


@pytest.mark.parametrize("kind", KINDS)
def test_every_reason_has_a_clause_without_gaps(kind):
    clause = describe_why(Why(kind, ROWS[:1], seeds=3, target=0.5))
    assert clause
    assert "{" not in clause
    assert "None" not in clause


def test_rows_and_the_target_that_are_open_are_named():
    why = Why("efficiency-open", ROWS, target=0.5)
    assert describe_why(why) == (
        "it is open whether horovod on 4 workers, native on 8 workers keeps a cost efficiency of 0.5"
    )


def test_a_limit_of_seeds_is_named_only_where_it_would_be_exceeded():
    within = Why("seeds-spread-too-far", ROWS[:1], seeds=40)
    beyond = Why("seeds-spread-too-far", ROWS[:1], seeds=40, most_seeds=26)
    assert describe_why(within).endswith("about 40 seeds of each row")
    assert describe_why(beyond) == (
        f"{describe_why(within)}, more than the 26 that may be run"
    )
