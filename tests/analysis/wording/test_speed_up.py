"""Each reason for a missing speed-up has words."""

import pytest

from scalestudy.analysis.measures import BASES
from scalestudy.analysis.speed_up import (
    ExcludedTimes,
    NoBaseline,
    OtherGpus,
    UnknownRate,
)
from scalestudy.analysis.wording.speed_up import REASON_WORDS, describe_reason

OVERSUBSCRIBED = NoBaseline(oversubscribed=True, strategies=("native",), details="")
MISSING = NoBaseline(
    oversubscribed=False,
    strategies=("horovod", "native"),
    details="train.batch_size = 64",
)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (None, None),
        ("in turn", REASON_WORDS["in turn"]),
        (
            ExcludedTimes("4 workers on 2 cores", disturbed=False),
            "oversubscribed: 4 workers on 2 cores",
        ),
        (
            ExcludedTimes("others used its cores", disturbed=True),
            "disturbed: others used its cores",
        ),
        (
            OtherGpus(frozenset({"B", "A"}), frozenset({"C"})),
            "its GPUs (A, B) are unlike its baseline's (C)",
        ),
        (
            OVERSUBSCRIBED,
            "its one-worker run was oversubscribed, so it is no baseline",
        ),
        (
            MISSING,
            "no finished one-worker run of horovod or native with train.batch_size = 64 to compare with",
        ),
    ],
)
def test_a_reason_names_its_figures(reason, words):
    assert describe_reason(reason) == words


@pytest.mark.parametrize("basis", BASES)
def test_an_unknown_rate_is_named_by_what_the_others_are_compared_by(basis):
    assert describe_reason(UnknownRate(basis)).endswith("is unknown")
