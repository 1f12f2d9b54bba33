import math

import pytest

import synthetic
from scalestudy.analysis.measures import measure
from scalestudy.analysis.runs import grouped, key_of


def measures(runs):
    return measure(grouped(runs))


def key(strategy, workers):
    return key_of(strategy, workers, {})


def test_throughput_is_a_geometric_mean_and_its_interval_is_positive():
    runs = [synthetic.run("horovod", 1, seed, throughput=value) for seed, value in enumerate((50.0, 200.0))]
    found = measures(runs).throughput.mean(key("horovod", 1))
    assert found.value == pytest.approx(100.0)
    assert 0 < found.low < 50
    assert found.high > 200


def test_quality_is_an_arithmetic_mean_and_its_interval_stays_within_the_bounds():
    runs = [synthetic.run("horovod", 1, seed, quality=value) for seed, value in enumerate((0.95, 1.0))]
    found = measures(runs).quality.mean(key("horovod", 1))
    assert found.value == pytest.approx(0.975)
    assert 0 <= found.low < 0.95
    assert found.high == 1


def test_a_metric_without_bounds_keeps_its_own_scale():
    runs = [synthetic.run("horovod", 1, seed, quality=q, metric="psnr") for seed, q in enumerate((0.9, 1.0))]
    found = measures(runs).quality.mean(key("horovod", 1))
    assert found.value - found.low == pytest.approx(found.high - found.value)
    assert found.high > 1


def test_times_of_virtual_and_of_real_workers_have_designs_of_their_own():
    found = measures(synthetic.seeded((1, 2, 4), ("horovod", "virtual")))
    for times in (found.throughput, found.training_seconds, found.wall_seconds):
        designs = {key.strategy: times.of_means[key] for key in found.groups}
        for strategy, design in designs.items():
            assert {row.strategy for row in design.rows} == {strategy}
    assert {len(design.rows) for design in found.quality.of_means.values()} == {6}


def test_times_of_oversubscribed_runs_are_in_no_design():
    runs = synthetic.seeded((1, 2, 4), ("horovod",))
    runs += [synthetic.run("horovod", 8, seed, oversubscribed="8 workers on 2 cores") for seed in range(3)]
    found = measures(runs)
    assert found.throughput.of_means[key("horovod", 8)] is None
    assert len(found.throughput.of_means[key("horovod", 1)].rows) == 3
    assert len(found.quality.of_means[key("horovod", 8)].rows) == 4


def test_qualities_by_different_metrics_are_in_different_designs():
    runs = [
        synthetic.run("horovod", workers, seed, metric=metric, quality=0.9 + 0.01 * seed)
        for workers, metric in ((1, "iou"), (2, "iou"), (4, "accuracy"), (8, "accuracy"))
        for seed in (0, 1)
    ]
    assert {len(design.rows) for design in measures(runs).quality.of_means.values()} == {2}


def test_one_run_gives_no_interval_even_among_rows_that_are_pooled():
    found = measures([*synthetic.seeded((1, 2, 4), ("horovod",)), synthetic.run("horovod", 8)])
    alone = key("horovod", 8)
    assert found.throughput.mean(alone).low is None
    assert found.throughput.ratio(alone, key("horovod", 1)).low is None
    assert found.quality.difference(alone, key("horovod", 1)).low is None
    assert found.throughput.mean(key("horovod", 4)).low is not None


def test_a_difference_is_over_the_seeds_that_both_rows_have():
    runs = [synthetic.run("horovod", 1, seed, quality=q) for seed, q in enumerate((0.90, 0.80, 0.70))]
    runs += [synthetic.run("horovod", 2, seed, quality=q) for seed, q in enumerate((0.89, 0.79))]
    found = measures(runs).quality.difference(key("horovod", 2), key("horovod", 1))
    assert found.value == pytest.approx(-0.01)
    assert found.half_width < 0.05


def test_a_row_keeps_its_own_variance_where_it_is_larger_than_that_of_the_design():
    runs = [
        synthetic.run("horovod", workers, seed, throughput=100 * math.exp(width * (seed - 0.5)))
        for workers, width in ((1, 0.02), (2, -0.02), (4, 0.02), (8, -0.06))
        for seed in (0, 1)
    ]
    found = measures(runs).throughput
    quiet, noisy = (found.mean(key("horovod", workers)).half_width for workers in (1, 8))
    assert noisy / quiet == pytest.approx(0.06 / math.sqrt((3 * 0.02**2 + 0.06**2) / 4), rel=0.01)
