"""Whether a batch fits: what a trial's process computes, and what its errors say."""

import pytest

from scalestudy.training.batch_trial import outcome
from scalestudy.util.errors import RunError


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(), RuntimeError("OOM when allocating tensor with shape[64,512]"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5 bytes"),
        RuntimeError("std::bad_alloc"),
    ],
)  # fmt: skip
def test_memory_that_ran_out_says_that_the_batch_does_not_fit(error):
    told = outcome(error)
    assert told["fits"] is False and told["why"]


@pytest.mark.parametrize("error", [RuntimeError("no room for doubt"), ValueError(""), KeyError("boom")])
def test_another_error_is_none_of_memory(error):
    told = outcome(error)
    assert "fits" not in told and type(error).__name__ in told["error"][1]


def test_an_error_in_three_parts_keeps_them():
    assert outcome(RunError("one GPU", "none", "Look.")) == {"error": ["one GPU", "none", "Look."]}
