import math

import pytest

import synthetic
from elsewhere import cassava, foreign
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.measures import measure, metric_of
from scalestudy.analysis.runs import Run, grouped, key_of, whole_metrics
from scalestudy.analysis.table import Row, records


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


def with_values(seed, **values):
    run = synthetic.run(seed=seed)
    result = run.result.model_copy(update={"validation": values, "class_names": ["cat", "dog"]})
    return synthetic.Run(result)


def test_values_of_classes_are_left_out():
    run = with_values(0, loss=0.1, iou=0.9, **{"iou_cat": 0.8, "iou_dog": 1.0})
    assert whole_metrics([run]) == ["loss", "iou"]
    assert whole_metrics([]) == []


def test_a_mean_has_an_interval_from_two_runs_on():
    runs = [with_values(seed, loss=value) for seed, value in enumerate((1.0, 3.0))]
    found = metric_of(runs, "loss")
    assert found.value == pytest.approx(2.0)
    assert found.low < 1.0 and found.high > 3.0
    assert metric_of(runs[:1], "loss").low is None


def test_what_a_run_lacks_is_not_known_of_its_row():
    runs = [with_values(0, loss=1.0), with_values(1)]
    assert metric_of(runs, "loss").value is None
    assert metric_of([with_values(0, loss=float("nan"))], "loss").value is None


def rows(runs: list[Run]) -> dict[int, Row]:
    return {row.workers: row for row in analyse("made", runs).rows}


def test_seconds_alone_give_speed_up_cost_and_provisional_advice():
    findings = analyse("Cassava", cassava())
    four = findings.rows[-1]
    assert four.basis == "training"
    assert four.speed.steady.value == pytest.approx(562 / 214)
    assert four.throughput.value is None
    assert findings.advice.choice is not None
    assert findings.advice.choice.workers == 3
    assert findings.advice.headline.startswith("Provisionally, ask for 3 workers")
    assert findings.advice.price.speedup.value == pytest.approx(562 / 249)
    assert "quality-unknown" in findings.advice.decision.provisional


def test_times_of_epochs_go_before_whole_times_and_the_first_epoch_is_left_out():
    found = rows([
        foreign(1, epochs=(90, 40, 40), training_seconds=170),
        foreign(2, epochs=(95, 20, 20), training_seconds=135),
    ])  # fmt: skip
    assert found[2].basis == "epoch"
    assert found[2].speed.steady.value == pytest.approx(2.0)
    assert found[2].speed.training.value == pytest.approx(170 / 135)


def test_throughput_goes_before_times_and_what_is_unlike_is_not_compared():
    found = rows([
        foreign(1, throughput=100.0, training_seconds=60.0),
        foreign(2, throughput=190.0, training_seconds=30.0),
        foreign(3, throughput=270.0),
        foreign(4, training_seconds=16.0),
    ])  # fmt: skip
    assert found[2].speed.steady.value == pytest.approx(1.9)
    assert found[4].speed.steady.value is None
    assert "throughput" in (found[4].speed.reason or "")
    assert found[4].speed.training.value == pytest.approx(60 / 16)


def test_another_number_of_epochs_is_other_work():
    found = rows([foreign(1, training_seconds=60.0, epochs=()), foreign(2, training_seconds=9.0)])
    assert found[2].speed.steady.value is not None
    short = foreign(2, training_seconds=9.0)
    unlike = Run(short.result.model_copy(update={"epochs": 2}), source=short.source)
    found = rows([foreign(1, training_seconds=60.0), unlike])
    assert found[2].speed.steady.value is None
    assert found[2].speed.reason == "trained for another number of epochs than the run it is compared with"


def test_runs_without_seeds_are_repeats_that_pair_with_none():
    runs = [
        foreign(n, line=10 * n + i, training_seconds=60.0 / n + i, quality=0.9 - 0.01 * i, metric="accuracy")
        for n in (1, 2)
        for i in range(3)
    ]
    findings = analyse("made", runs)
    assert [row.seeds for row in findings.rows] == [(None, None, None)] * 2
    assert findings.rows[1].runs == 3
    assert findings.rows[1].speed.steady.low is not None
    assert findings.rows[1].verdict.change.low is not None
    assert findings.measures.quality.values.keys() == grouped(runs).keys()


def test_a_row_of_ours_without_steady_throughput_is_not_held_by_its_times():
    found = rows(
        [synthetic.run(throughput=None, epochs=1), synthetic.run("horovod", 2, throughput=None, epochs=1)]
    )
    assert found[2].basis == "throughput"
    assert found[2].speed.steady.value is None
    assert "one epoch only" in (found[2].speed.reason or "")


def test_the_table_says_where_numbers_come_from_and_leaves_the_rest_blank():
    record = records(analyse("made", cassava()).rows)[1]
    assert record["taken_from"] == "times.csv, line 3"
    assert record["speedup_basis"] == "training"
    for blank in ("throughput", "quality", "global_batch", "gpu_joules", "constant_quality"):
        assert record[blank] is None
