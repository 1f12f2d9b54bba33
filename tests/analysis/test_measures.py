from dataclasses import replace

import pytest

import synthetic
from imported_runs import cassava, imported_run
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.measures import find_baseline, measure_rows
from scalestudy.analysis.runs import Key, Run, group_runs, key_of, whole_metrics
from scalestudy.analysis.study_table import records


def measures(runs):
    return measure_rows(group_runs(runs))


def key(strategy, workers):
    return key_of(strategy, workers, {})


def test_throughput_is_a_geometric_mean_and_its_interval_is_positive():
    runs = synthetic.rows("horovod", "throughput", {1: (50.0, 200.0)})
    mean = measures(runs).throughput.mean(key("horovod", 1))
    assert mean.value == pytest.approx(100.0)
    assert 0 < mean.low < 50
    assert mean.high > 200


def test_without_one_worker_the_fewest_workers_are_the_baseline_and_thousands_of_rows_are_looked_at_once(
    monkeypatch,
):
    asked = []
    of_key = Key.series.fget
    monkeypatch.setattr(
        Key, "series", property(lambda key: asked.append(key) or of_key(key))
    )
    many = [
        imported_run(n, strategy=f"s{of}", training_seconds=9.0)
        for of in range(50)
        for n in (2, 4)
    ]
    groups = group_runs(many)
    found = {row: find_baseline(row, groups) for row in groups}
    assert found == {row: key(row.strategy, 2) for row in groups}
    assert len(asked) == 2 * len(many)


def test_a_quality_stays_within_its_bounds_and_one_without_bounds_on_its_own_scale():
    def mean(*values, **options):
        runs = synthetic.rows("horovod", "quality", {1: values}, **options)
        return measures(runs).quality.mean(key("horovod", 1))

    bounded, unbounded = mean(0.95, 1.0), mean(0.9, 1.0, metric="psnr")
    assert bounded.value == pytest.approx(0.975)
    assert 0 <= bounded.low < 0.95
    assert bounded.high == 1
    assert unbounded.value - unbounded.low == pytest.approx(
        unbounded.high - unbounded.value
    )
    assert unbounded.high > 1


def test_only_what_was_measured_alike_shares_a_design():
    virtual = measures(synthetic.seeded((1, 2, 4), ("horovod", "virtual")))
    for times in (virtual.throughput, virtual.training_seconds, virtual.wall_seconds):
        assert groups_of_one_design(times) == [{"horovod"}, {"virtual"}]
    assert groups_of_one_design(virtual.quality) == [{"horovod", "virtual"}]
    runs = synthetic.seeded((1, 2, 4), ("horovod",))
    runs += [
        synthetic.run("horovod", 8, seed, oversubscribed="8 workers on 2 cores")
        for seed in range(3)
    ]
    crowded = measures(runs)
    assert crowded.throughput.of_means[key("horovod", 8)] is None
    assert crowded.throughput.of_means[key("horovod", 1)] is not None
    assert len({id(design) for design in crowded.quality.of_means.values()}) == 1
    runs = [
        synthetic.run(
            "horovod", workers, seed, metric=metric, quality=0.9 + 0.01 * seed
        )
        for workers, metric in (
            (1, "iou"),
            (2, "iou"),
            (4, "accuracy"),
            (8, "accuracy"),
        )
        for seed in (0, 1)
    ]
    assert len({id(design) for design in measures(runs).quality.of_means.values()}) == 2


def test_a_disturbed_run_is_left_out_of_the_times_of_its_row_and_of_no_quality():
    def with_one(**disturbed):
        runs = synthetic.seeded((1, 2), ("horovod",))
        third = next(
            run for run in runs if run.result.workers == 2 and run.result.seed == 2
        )
        slow = {
            "throughput": 1.0,
            "training_seconds": 1e4,
            "wall_seconds": 1e4,
        } | disturbed
        busy = None if disturbed else "other programs used 40% of its cores"
        result = third.result.model_copy(update=slow)
        return [run for run in runs if run is not third] + [
            replace(third, result=result, busy=busy)
        ]

    undisturbed = (
        measures(synthetic.seeded((1, 2), ("horovod",)))
        .throughput.mean(key("horovod", 2))
        .value
    )
    for runs in (
        with_one(),
        with_one(oversubscribed="cores shared with another study"),
    ):
        findings = analyse("made", runs)
        row = findings.rows[-1]
        assert row.throughput.value == pytest.approx(undisturbed, rel=0.05)
        assert row.oversubscribed is None and row.price is not None
        assert len(findings.measures.wall_seconds.values[row.key]) == 2
        assert len(findings.measures.quality.values[row.key]) == 3


def groups_of_one_design(measure):
    """Strategies of the rows that share a design."""
    groups = {}
    for row, design in measure.of_means.items():
        groups.setdefault(id(design), set()).add(row.strategy)
    return [*groups.values()]


def test_a_row_of_which_a_run_failed_widens_no_other_interval_of_quality():
    rows = {
        1: (1.0, 1.0, 1.0),
        2: (1.0, 1.0, 1.0),
        4: (0.99, 0.99, 0.99),
        8: (1.0, 0.2, 1.0),
    }
    runs = synthetic.rows("horovod", "quality", rows)
    study = measures(runs)
    assert [len(study.failed[key("horovod", n)]) for n in rows] == [0, 0, 0, 1]
    change = study.quality.difference(key("horovod", 4), key("horovod", 1))
    assert (change.low, change.high) == pytest.approx((-0.01, -0.01))
    assert study.quality.of_means[key("horovod", 8)] is None


def test_one_run_has_a_wide_interval_among_rows_whose_spread_is_known_and_else_none():
    runs = [
        *synthetic.seeded((1, 2, 4), ("horovod",)),
        synthetic.run("horovod", 8, throughput=700.0),
    ]
    study = measures(runs)
    alone, four, one = (key("horovod", workers) for workers in (8, 4, 1))
    for quantity in (study.throughput, study.quality):
        assert quantity.mean(alone).half_width > quantity.mean(four).half_width
        others = [
            quantity.difference(row, one).half_width
            for row in (key("horovod", 2), four)
        ]
        assert quantity.difference(alone, one).half_width > min(others)
    single = measures([synthetic.run("horovod", 1), synthetic.run("horovod", 8)])
    assert single.throughput.ratio(alone, one).low is None


def test_a_difference_is_over_the_seeds_that_both_rows_have():
    runs = synthetic.rows("horovod", "quality", {1: (0.90, 0.80, 0.70)})
    runs += synthetic.rows("horovod", "quality", {2: (0.89, 0.79)})
    change = measures(runs).quality.difference(key("horovod", 2), key("horovod", 1))
    assert change.value == pytest.approx(-0.01)
    assert change.half_width < 0.05


def test_metrics_of_classes_are_left_out_of_those_of_the_whole_set():
    values = {"loss": 0.1, "iou": 0.9, "iou_cat": 0.8, "iou_dog": 1.0}
    run = synthetic.changed(
        synthetic.run(), validation=values, class_names=["cat", "dog"]
    )
    assert whole_metrics([run]) == ["loss", "iou"]
    assert whole_metrics([]) == []


def rows(runs):
    return {row.workers: row for row in analyse("made", runs).rows}


def test_seconds_alone_give_speed_up_cost_and_provisional_advice():
    findings = analyse("Cassava", cassava())
    four, decision = findings.rows[-1], findings.advice.decision
    assert four.basis == "training"
    assert four.speed.steady.value == pytest.approx(562 / 214)
    assert four.throughput.value is None
    assert decision.choice.workers == 3
    assert decision.price.speedup.value == pytest.approx(562 / 249)
    assert "quality-unknown" in decision.provisional
    record = records(findings.rows)[1]
    assert (record["taken_from"], record["speedup_basis"]) == (
        "times.csv, line 3",
        "training",
    )
    for blank in (
        "throughput",
        "quality",
        "global_batch",
        "gpu_joules",
        "constant_quality",
    ):
        assert record[blank] is None


def test_times_of_epochs_go_before_whole_times():
    found = rows(
        [
            imported_run(1, epoch_seconds=40, training_seconds=170),
            imported_run(2, epoch_seconds=20, training_seconds=135),
        ]
    )
    assert found[2].basis == "epoch"
    assert found[2].speed.steady.value == pytest.approx(2.0)
    assert found[2].speed.training.value == pytest.approx(170 / 135)


def test_throughput_goes_before_times_and_what_is_unlike_is_not_compared():
    found = rows(
        [
            imported_run(1, throughput=100.0, training_seconds=60.0),
            imported_run(2, throughput=190.0, training_seconds=30.0),
            imported_run(3, throughput=270.0),
            imported_run(4, training_seconds=16.0),
        ]
    )
    assert found[2].speed.steady.value == pytest.approx(1.9)
    assert (found[4].speed.steady.value, bool(found[4].speed.reason)) == (None, True)
    assert found[4].speed.training.value == pytest.approx(60 / 16)
    short = imported_run(2, training_seconds=9.0)
    unlike = Run(short.result.model_copy(update={"epochs": 2}), source=short.source)
    two = rows([imported_run(1, training_seconds=60.0), unlike])[2]
    assert (two.speed.steady.value, bool(two.speed.reason)) == (None, True)


def test_runs_without_seeds_are_repeats_that_pair_with_none():
    runs = [
        imported_run(
            n,
            line=10 * n + i,
            training_seconds=60.0 / n + i,
            quality=0.9 - 0.01 * i,
            metric="accuracy",
        )
        for n in (1, 2)
        for i in range(3)
    ]
    one, two = analyse("made", runs).rows
    assert one.seeds == two.seeds == (None, None, None)
    assert two.speed.steady.low is not None
    assert two.verdict.change.low is not None


def test_a_row_of_ours_without_steady_throughput_is_not_held_by_its_times():
    rows_of_two = [
        synthetic.run(name, n, throughput=None, epochs=1)
        for n, name in ((1, "single"), (2, "horovod"))
    ]
    two = rows(rows_of_two)[2]
    assert (two.basis, two.speed.steady.value, bool(two.speed.reason)) == (
        "throughput",
        None,
        True,
    )
