"""What runs of one worker tell."""

import pytest

import made
from one_worker_runs import one, timed
from scalestudy.features.estimate.one_worker import FIXED_UNKNOWN


def test_epochs_in_which_a_process_warms_up_are_kept_apart():
    found = one([timed([5.0, 2.0, 2.0, 4.0, 2.0], resumed=(4,))])
    assert found.epoch_seconds.value == pytest.approx(2.0)
    assert found.first_seconds == pytest.approx(3.0 + 2.0)


def test_waiting_for_input_evaluation_and_start_up_are_measured():
    found = one([timed([2.0, 2.0, 2.0], waited=0.25)])
    assert found.input_share == pytest.approx(0.25)
    assert found.evaluation_seconds == pytest.approx(5.0), "half a second an epoch, of ten"
    assert found.starting_seconds == pytest.approx(6.3 + 9.0)


def test_seeds_that_differ_widen_the_range_of_an_epoch():
    narrow = one([timed([2, 2.0, 2.0], seed=seed) for seed in (0, 1)]).epoch_seconds
    wide = one([timed([2, 2.0 + seed / 5, 2.0 + seed / 5], seed=seed) for seed in (0, 1)]).epoch_seconds
    assert narrow.high / narrow.value < 1.04 < wide.high / wide.value


def test_another_run_differs_by_more_than_the_mean_of_several_is_uncertain():
    found = one([timed([2.0, 2.0, 2.0], seed=seed) for seed in range(4)])
    assert found.repeats.value == 1.0
    assert found.repeats.high - 1 > 1.9 * (found.epoch_seconds.high / found.epoch_seconds.value - 1)


def test_of_one_size_of_slices_the_fixed_cost_is_not_known():
    found = one([timed([2.0, 2.0, 2.0])])
    assert not found.fixed_known
    assert (found.fixed_share.low, found.fixed_share.high) == FIXED_UNKNOWN


def test_two_sizes_of_slices_tell_the_fixed_cost_of_a_step():
    # A step takes 0.1 s and 0.05 s a sample: 0.9 s for 16, and 0.3 s for 4.
    own, other = timed([9.0, 9.0, 9.0]), timed([12.0, 12.0, 12.0], batch=4)
    found = one([own], [other])
    assert found.fixed_known
    assert found.fixed_share.value == pytest.approx(0.1 / 0.9)


def test_gradients_are_the_recorded_buckets_and_without_a_record_four_bytes_a_parameter():
    run = timed([2.0, 2.0])
    assert one([run]).bucket_bytes == (4 * 485_673,)
    kept = run.result.model_copy(update={"bucket_bytes": [8, 4], "bucket_work": [3, 1]})
    assert one([made.Run(kept, run.epochs)]).bucket_bytes == (8, 4)


def test_runs_without_records_of_epochs_tell_nothing():
    assert one([made.Run(timed([2.0]).result)]) is None
    assert one([]) is None


def test_one_epoch_alone_counts_for_what_it_is():
    found = one([timed([3.0])])
    assert found.epoch_seconds.value == pytest.approx(3.0)
    assert found.epoch_seconds.high > 3.1
