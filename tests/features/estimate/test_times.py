"""The time of a training by n workers, against times worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from scalestudy.features.estimate.fit_link import KnownLink
from scalestudy.features.estimate.network import Path
from scalestudy.features.estimate.one_worker import OneWorker
from scalestudy.features.estimate.times import Terms, drawn, fabric_of, terms_of, training
from scalestudy.features.estimate.uncertain import exactly

EXACT = OneWorker(
    batch=10, training_samples=100, epochs=2, epoch_seconds=exactly(10.0), input_share=0.0,
    fixed_share=exactly(0.2), fixed_known=True, first_seconds=3.0, evaluation_seconds=4.0,
    starting_seconds=7.0, other_seconds=1.0, spread=exactly(0.0), steps_known=True,
    bucket_bytes=(1_000_000,), bucket_work=(), sample_bytes=1000.0, runs=1,
    per_worker_rule=True, names=("one",),
)  # fmt: skip
LINK = KnownLink(exactly(0.01), 0, exactly(1.0), exactly(100e6), "made", measured=False)
PATH = Path("ring", "ring", LINK, None)
NOTHING = Terms(exactly(1.0), exactly(0.0))


def trained(worker, workers, terms=NOTHING, per_node=1, path=PATH):
    draws = drawn(worker, path, terms, seed=0, draws=50)
    return training(worker, path, terms, draws, workers, fabric_of(draws, workers, per_node))


def seconds(values):
    assert np.ptp(values) < 1e-9
    return float(np.mean(values))


def test_one_worker_takes_what_it_took():
    found = trained(EXACT, 1)
    assert seconds(found.training) == pytest.approx(2 * 10 + 3)
    assert seconds(found.wall) == pytest.approx(23 + 7 + 4 + 1)
    assert (found.updates, found.global_batch) == (20, 10)


def test_with_a_batch_of_its_own_every_worker_computes_as_before_and_there_are_fewer_steps():
    found = trained(EXACT, 5)
    exchange = 8 * 0.01 + 8 / 5 * 1e6 / 100e6
    assert (found.updates, found.global_batch) == (4, 50)
    assert seconds(found.training) == pytest.approx(4 * (1.0 + exchange) + 3)


def test_of_one_global_batch_slices_shrink_and_what_is_fixed_stays():
    found = trained(replace(EXACT, per_worker_rule=False), 5)
    exchange = 8 * 0.01 + 8 / 5 * 1e6 / 100e6
    assert (found.updates, found.global_batch) == (20, 10)
    assert seconds(found.training) == pytest.approx(20 * (0.2 + 0.8 / 5 + exchange) + 3)


def test_the_largest_slice_decides_where_a_batch_does_not_divide():
    found = trained(replace(EXACT, per_worker_rule=False), 4)
    assert seconds(found.full.parts["computing"]) == pytest.approx(0.08 * 10 / 4)
    assert seconds(found.full.parts["uneven"]) == pytest.approx(0.08 * (3 - 10 / 4))


def test_beyond_the_training_set_more_workers_change_no_slice():
    assert seconds(trained(EXACT, 400).full.parts["uneven"]) == pytest.approx(0.08 * (1 - 100 / 400))
    assert trained(EXACT, 400).updates == 2


def test_waiting_for_input_stays_with_the_sample():
    found = trained(replace(EXACT, input_share=0.5), 5)
    assert seconds(found.full.parts["input"]) == pytest.approx(0.5)


def test_a_shared_file_system_bounds_what_all_workers_read():
    slow = replace(NOTHING, storage=10e3)  # 50 samples of 1000 bytes a step: 5 s
    found = trained(EXACT, 5, slow)
    assert seconds(found.full.parts["input"]) == pytest.approx(5.0 - 1.0)
    fast = trained(EXACT, 5, replace(NOTHING, storage=1e9))
    assert seconds(fast.full.parts["input"]) == 0


def test_workers_of_one_node_may_slow_each_other():
    found = trained(EXACT, 4, replace(NOTHING, contention=exactly(0.1)), per_node=2)
    assert seconds(found.full.parts["computing"]) == pytest.approx(0.8 * 1.1)


def test_the_slowest_of_more_workers_is_slower():
    uneven = replace(EXACT, spread=exactly(0.05))
    few, many = (trained(uneven, n).full.parts["slowest"].mean() for n in (2, 1024))
    assert 0 < few < many < 0.05 * 4


def test_links_of_a_node_stand_for_those_between_nodes_where_these_are_not_known():
    within = Path("ring", "ring", None, LINK)
    assert seconds(trained(EXACT, 5, path=within).training) == seconds(trained(EXACT, 5).training)
    with pytest.raises(ValueError, match="no link"):
        trained(EXACT, 5, path=Path("ring", "ring", None, None))


def test_draws_repeat_and_another_seed_gives_others():
    wide = replace(EXACT, epoch_seconds=replace(EXACT.epoch_seconds, low=9.0, high=11.0))
    one, two = (drawn(wide, PATH, NOTHING, seed=0, draws=9).epoch for _ in range(2))
    assert (one == two).all()
    assert (one != drawn(wide, PATH, NOTHING, seed=1, draws=9).epoch).all()


def test_with_xla_nothing_is_hidden_and_on_gpus_more_than_on_cpus():
    assert terms_of(gpu=True, xla=True, per_node=1, storage=None).hidden.high == 0
    cpu, gpu = (terms_of(gpu=each, xla=False, per_node=4, storage=None) for each in (False, True))
    assert cpu.hidden.low < gpu.hidden.low
    assert cpu.contention.high > gpu.contention.high > 0
    assert terms_of(gpu=True, xla=False, per_node=1, storage=None).contention.high == 0
