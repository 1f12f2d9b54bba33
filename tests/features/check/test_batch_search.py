"""The search for the largest batch: exact, with few trials, and never beyond what is foreseen to fit."""

import pytest

from scalestudy.features.check.largest_batch import BatchTrial, foreseen, search


def machine(holds, fixed=100, each=10):
    """A machine where a batch takes `fixed + each * batch`, which ends what takes more than it holds."""
    tried = []

    def attempt(batch):
        tried.append(batch)
        peak = fixed + each * batch
        return BatchTrial(batch, peak <= holds, peak)

    return attempt, tried


@pytest.mark.parametrize("largest", [1, 2, 7, 8, 9, 100, 1000])
@pytest.mark.parametrize("start", [1, 8, 64])
@pytest.mark.parametrize("budget", [False, True])
def test_the_largest_batch_is_found_exactly(largest, start, budget):
    holds = 100 + 10 * largest
    attempt, _ = machine(holds)
    found = search(attempt, start=start, most=5000, budget=holds if budget else None)
    assert found.largest == largest


def test_what_is_foreseen_to_take_too_much_is_never_tried():
    holds = 100 + 10 * 300
    attempt, tried = machine(holds)
    found = search(attempt, start=8, most=5000, budget=holds)
    assert max(tried) == found.largest == 300
    foreseen_ones = [each for each in found.trials if not each.tried]
    assert foreseen_ones and all(each.batch > 300 and each.peak > holds for each in foreseen_ones)


def test_the_whole_training_set_is_the_most_that_is_asked_for():
    attempt, tried = machine(10**9)
    assert search(attempt, start=64, most=1437).largest == 1437
    assert max(tried) == 1437
    assert search(attempt, start=64, most=10).largest == 10


def test_where_not_even_one_sample_fits_none_does():
    attempt, tried = machine(50)
    assert search(attempt, start=8, most=100).largest == 0
    assert min(tried) == 1


def test_each_trial_is_told_as_it_is_made():
    told = []
    attempt, _ = machine(500)
    found = search(attempt, start=4, most=100, on_trial=told.append)
    assert told == list(found.trials)


def test_memory_is_foreseen_on_a_line_through_what_fits():
    two = [BatchTrial(10, True, 200.0), BatchTrial(20, True, 300.0), BatchTrial(40, False, 9e9)]
    assert foreseen(two, 30) == 400
    assert foreseen(two[:1], 30) is None
    assert foreseen([BatchTrial(10, True, 300.0), BatchTrial(20, True, 300.0)], 30) is None
    assert foreseen([BatchTrial(10, True, None), BatchTrial(20, True, 300.0)], 30) is None
