"""Training time with n workers, compared with times computed by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synthetic
from one_worker_runs import one, timed
from scalestudy.features.advise.network import KnownLink, Route, exactly
from scalestudy.features.advise.step_model import (
    Jitter,
    OneWorker,
    StepModel,
    Unmeasured,
    expected_maximum,
    exposed,
    ready_shares,
    unmeasured_of,
)

EXACT = OneWorker(
    batch=10,
    training_samples=100,
    epochs=2,
    epoch_seconds=exactly(10.0),
    input_share=0.0,
    first_seconds=3.0,
    evaluation_seconds=4.0,
    other_seconds=8.0,
    repeats=exactly(1.0),
    jitter=Jitter((1.0,), (100,)),
    bucket_bytes=(1_000_000,),
    bucket_work=(),
    runs=1,
    per_worker_rule=True,
)
LINK = KnownLink(exactly(0.01), 0, exactly(1.0), exactly(100e6), "made")
ROUTE = Route("ring", "ring", LINK, None)
NOTHING = Unmeasured(
    exactly(1.0),
    exactly(0.0),
    fixed=exactly(0.2),
    differences=exactly(0.0),
    overhead=exactly(0.0),
    in_training=exactly(1.0),
)


def trained(worker, workers, terms=NOTHING, per_node=1, route=ROUTE):
    return StepModel(worker, route, terms, draws=50).training(workers, per_node)


def seconds(values):
    assert np.ptp(values) < 1e-9
    return float(np.mean(values))


def test_one_worker_takes_what_it_took():
    found = trained(EXACT, 1)
    assert seconds(found.seconds) == pytest.approx(2 * 10 + 3)
    assert seconds(found.wall) == pytest.approx(23 + 8 + 4)
    assert (found.updates, found.global_batch) == (20, 10)


SPLIT = replace(EXACT, per_worker_rule=False)
EXCHANGE = 8 * 0.01 + 8 / 5 * 1e6 / 100e6


@pytest.mark.parametrize(
    ("worker", "updates", "total"),
    [(EXACT, 4, 4 * (1.0 + EXCHANGE) + 3), (SPLIT, 20, 20 * (0.2 + 0.8 / 5 + EXCHANGE) + 3)],
)
def test_a_batch_of_its_own_takes_fewer_steps_and_of_a_global_one_slices_shrink(worker, updates, total):
    found = trained(worker, 5)
    assert (found.updates, found.global_batch) == (updates, 200 // updates)
    assert seconds(found.seconds) == pytest.approx(total)


@pytest.mark.parametrize(
    ("worker", "workers", "more", "parts"),
    [
        (SPLIT, 4, {}, {"computing": 0.08 * 10 / 4, "uneven": 0.08 * (3 - 10 / 4)}),
        (EXACT, 400, {}, {"uneven": 0.08 * (1 - 100 / 400)}),
        (replace(EXACT, input_share=0.5), 5, {}, {"input": 0.5}),
        (
            EXACT,
            4,
            {"terms": replace(NOTHING, contention=exactly(0.1)), "per_node": 2},
            {"computing": 0.8 * 1.1},
        ),
    ],
    ids=["largest slice", "more workers than samples", "input of each sample", "workers of a node"],
)
def test_the_parts_of_a_step(worker, workers, more, parts):
    found = trained(worker, workers, **more)
    assert {name: seconds(found.step[name]) for name in parts} == pytest.approx(parts)
    assert workers < 400 or found.updates == 2


def test_the_slowest_of_more_workers_is_slower():
    unequal = replace(NOTHING, differences=exactly(0.05))
    few, many = (trained(EXACT, n, unequal).step["slowest"].mean() for n in (2, 1024))
    assert 0 < few < many < 0.05 * 4


def test_links_of_a_node_stand_for_those_between_nodes_where_these_are_not_known():
    within = Route("ring", "ring", None, LINK)
    assert seconds(trained(EXACT, 5, route=within).seconds) == seconds(trained(EXACT, 5).seconds)


def test_draws_repeat_and_another_seed_gives_others():
    wide = replace(EXACT, epoch_seconds=replace(EXACT.epoch_seconds, low=9.0, high=11.0))
    one, two = (StepModel(wide, ROUTE, NOTHING, draws=9).epoch for _ in range(2))
    assert (one == two).all()
    assert (one != StepModel(wide, ROUTE, NOTHING, seed=1, draws=9).epoch).all()


def test_with_xla_nothing_is_hidden_and_on_gpus_more_than_on_cpus():
    assert unmeasured_of(gpu=True, xla=True, per_node=1).hidden.high == 0
    cpu, gpu = (unmeasured_of(gpu=each, xla=False, per_node=4) for each in (False, True))
    assert cpu.hidden.low < gpu.hidden.low
    assert cpu.contention.high > gpu.contention.high > 0
    assert unmeasured_of(gpu=True, xla=False, per_node=1).contention.high == 0


def test_buckets_are_ready_by_their_work_and_by_their_bytes_where_that_is_not_known():
    assert ready_shares([30, 10], [10, 30]) == [0.25, 1.0]
    assert ready_shares([30, 10], []) == [0.75, 1.0]
    assert ready_shares([], []) == []
    assert ready_shares([0, 0], [0, 0]) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("costs", "shares", "more", "left"),
    [
        ([], [], {}, 0.0),
        ([2.0], [1.0], {}, 2.0),
        # Ready at 1 and 4; summed from 1 to 3 and from 4 to 6; the backward pass ends at 4.
        ([2.0, 2.0], [0.25, 1.0], {}, 2.0),
        # The first sum runs until 6, so the second ends at 8.
        ([5.0, 2.0], [0.25, 1.0], {}, 4.0),
        # Both are ready when the first sum starts: one negotiation. The second is ready later: two.
        ([2.0, 2.0], [1.0, 1.0], {"overhead": 1.0}, 5.0),
        ([2.0, 2.0], [0.0, 1.0], {"overhead": 1.0}, 3.0),
        ([2.0, 2.0], [0.25, 1.0], {"hidden": 0.0, "overhead": 1.0}, 5.0),
        # Sums take the workers' cores.
        ([5.0, 2.0], [0.25, 1.0], {"hidden": 0.0}, 7.0),
        ([5.0, 2.0], [0.25, 1.0], {"hidden": 0.5}, 5.5),
    ],
)
def test_a_bucket_waits_for_its_gradients_and_for_the_bucket_before_it(costs, shares, more, left):
    assert exposed(costs, shares, 4.0, **more) == pytest.approx(left)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1)), min_size=1, max_size=6), st.floats(0, 10))
def test_no_less_is_left_than_the_last_bucket_and_no_more_than_all(buckets, backward):
    costs = [cost for cost, _ in buckets]
    shares = [*sorted(share for _, share in buckets)[:-1], 1.0]
    left = exposed(costs, shares, backward)
    assert costs[-1] - 1e-9 <= left <= sum(costs) + 1e-9


@pytest.mark.parametrize("count", [2, 4, 32, 1024])
def test_it_is_the_mean_of_the_largest_of_so_many_normal_values(count):
    normal = np.random.default_rng(0).standard_normal((2000, count))
    assert expected_maximum(count) == pytest.approx(normal.max(axis=1).mean(), abs=0.06)


def test_one_worker_waits_for_nobody_and_growth_is_slower_than_any_power():
    assert expected_maximum(1) == 0
    assert expected_maximum(16) > 1.7 and expected_maximum(4096) < 3.7


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
