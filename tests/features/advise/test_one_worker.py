"""Measurements from one-worker runs."""

import pytest

import synthetic
from one_worker_runs import one, timed


def test_epochs_in_which_a_process_warms_up_are_kept_apart():
    worker = one([timed([5.0, 2.0, 2.0, 4.0, 2.0], resumed=(4,))])
    assert worker.epoch_seconds.value == pytest.approx(2.0)
    assert worker.first_seconds == pytest.approx(3.0 + 2.0)


def test_waiting_for_input_evaluation_and_what_is_beside_are_measured():
    run = timed([2.0, 2.0, 2.0], waited=0.25)
    wall = {"training_seconds": 6.0, "wall_seconds": 20.0}
    worker = one([synthetic.Run(run.result.model_copy(update=wall), run.epochs)])
    assert worker.input_share == pytest.approx(0.25)
    assert worker.evaluation_seconds == pytest.approx(5.0), "half a second an epoch, of ten"
    assert worker.other_seconds == pytest.approx(20.0 - 6.0 - 1.5)


def test_seeds_that_differ_widen_the_range_of_an_epoch():
    narrow = one([timed([2, 2.0, 2.0], seed=seed) for seed in (0, 1)]).epoch_seconds
    wide = one([timed([2, 2.0 + seed / 5, 2.0 + seed / 5], seed=seed) for seed in (0, 1)]).epoch_seconds
    assert narrow.high / narrow.value < 1.04 < wide.high / wide.value


def test_another_run_differs_by_more_than_the_mean_of_several_is_uncertain():
    worker = one([timed([2.0, 2.0, 2.0], seed=seed) for seed in range(4)])
    assert worker.repeats.value == 1.0
    assert worker.repeats.high - 1 > 1.9 * (worker.epoch_seconds.high / worker.epoch_seconds.value - 1)


def test_gradients_are_the_recorded_buckets_and_without_a_record_four_bytes_a_parameter():
    run = timed([2.0, 2.0])
    assert one([run]).bucket_bytes == (4 * 485_673,)
    kept = run.result.model_copy(update={"bucket_bytes": [8, 4], "bucket_work": [3, 1]})
    assert one([synthetic.Run(kept, run.epochs)]).bucket_bytes == (8, 4)


def test_runs_without_records_of_epochs_tell_nothing():
    assert one([synthetic.Run(timed([2.0]).result)]) is None
    assert one([]) is None


def test_one_epoch_alone_counts_for_what_it_is():
    worker = one([timed([3.0])])
    assert worker.epoch_seconds.value == pytest.approx(3.0)
    assert worker.epoch_seconds.high > 3.1
