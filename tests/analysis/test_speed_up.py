import pytest

import synthetic
from imported_runs import imported_run
from published import TABLES, column
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.measures import measure_rows
from scalestudy.analysis.quality import judge
from scalestudy.analysis.runs import group_runs, key_of
from scalestudy.analysis.scaling_model import series_of
from scalestudy.analysis.speed_up import ExcludedTimes, speed_up
from scalestudy.analysis.study_table import records
from scalestudy.analysis.wording.speed_up import describe_relative


def speed(runs, strategy, workers, swept=None):
    return speed_up(
        key_of(strategy, workers, swept or {}), measure_rows(group_runs(runs))
    )


def test_speed_up_is_the_ratio_of_throughputs_and_of_training_times():
    runs = [
        synthetic.run("horovod", 1, throughput=100.0, training_seconds=60.0),
        synthetic.run("horovod", 4, throughput=360.0, training_seconds=20.0),
    ]
    found = speed(runs, "horovod", 4)
    assert found.steady.value == pytest.approx(3.6)
    assert found.training.value == pytest.approx(3.0)
    assert found.baseline == key_of("horovod", 1, {})
    assert found.steady.low is None


def test_published_speed_ups_come_out_as_published_and_of_seconds_up_to_7_per_cent_below():
    """The published speed-ups use the second epoch; the published seconds do not."""
    runs = synthetic.published()
    for workers, (_, s_native, _, _, s_horovod, _) in synthetic.U_NET.items():
        for strategy, published in (("native", s_native), ("horovod", s_horovod)):
            found = speed(runs, strategy, workers)
            assert found.steady.value == pytest.approx(published)
            assert 0.93 * published < found.training.value < published + 0.005


def test_the_published_mnist_efficiency_counts_samples_that_were_never_processed():
    printed, processed = (
        column("mnist", "printed_throughput"),
        column("mnist", "processed_per_epoch"),
    )
    claimed = TABLES["mnist"]["printed_efficiency_percent"]
    assert 100 * printed[8] / (8 * printed[1]) == pytest.approx(claimed, abs=1)
    whole = TABLES["mnist"]["training_samples"]
    runs = [
        synthetic.run("horovod", n, throughput=printed[n] * processed[n] / whole)
        for n in (1, 8)
    ]
    corrected = synthetic.summarise(runs)[1].efficiency.value
    assert 100 * corrected == pytest.approx(
        TABLES["mnist"]["corrected_efficiency_percent"][0], abs=0.5
    )


@pytest.mark.parametrize("reference", ["single", "native", "horovod"])
def test_without_its_own_one_worker_point_a_strategy_is_held_against_plain_training_alone(
    reference,
):
    runs = [synthetic.run(reference, 1), synthetic.run("mirrored", 2, throughput=190.0)]
    found = speed(runs, "mirrored", 2)
    if reference == "horovod":
        assert (found.steady.value, found.baseline, bool(found.reason)) == (
            None,
            None,
            True,
        )
    else:
        assert (found.steady.value, found.baseline.strategy) == (
            pytest.approx(1.9),
            reference,
        )


@pytest.mark.parametrize("engine", ["tensorflow", "theirs"])
def test_one_worker_of_the_same_engine_is_the_baseline_and_that_of_another_is_none(
    engine,
):
    runs = [synthetic.run("single", 1, seed, throughput=100.0) for seed in range(3)]
    runs = [synthetic.changed(run, engine=engine) for run in runs]
    pairs = [synthetic.run("horovod", 2, seed, throughput=180.0) for seed in range(3)]
    runs += [synthetic.changed(run, engine="tensorflow") for run in pairs]
    found = speed(runs, "horovod", 2)
    quality = judge(key_of("horovod", 2, {}), measure_rows(group_runs(runs)))
    if engine == "tensorflow":
        assert found.steady.value == pytest.approx(1.8)
        assert found.baseline == quality.reference == key_of("single", 1, {})
    else:
        assert (found.steady.value, found.baseline, quality.kind) == (
            None,
            None,
            "no-reference",
        )


def test_the_baseline_has_the_same_other_swept_values():
    runs = [
        synthetic.run("horovod", 1, swept={"train.batch_size": 8}, throughput=50.0),
        synthetic.run("horovod", 1, swept={"train.batch_size": 32}, throughput=100.0),
        synthetic.run("horovod", 2, swept={"train.batch_size": 32}, throughput=150.0),
        synthetic.run("horovod", 2, swept={"train.batch_size": 64}, throughput=150.0),
    ]
    assert speed(
        runs, "horovod", 2, {"train.batch_size": 32}
    ).steady.value == pytest.approx(1.5)
    alone = speed(runs, "horovod", 2, {"train.batch_size": 64})
    assert alone.steady.value is None
    assert alone.reason.details == "train.batch_size = 64"


def test_without_one_worker_the_speed_up_is_relative_to_the_fewest_workers_and_says_so():
    runs = [
        synthetic.run("horovod", 4, throughput=400.0, training_seconds=60.0),
        synthetic.run("horovod", 8, throughput=720.0, training_seconds=32.0),
    ]
    first, second = synthetic.summarise(runs)
    found = second.speed
    assert (found.steady.value, found.training.value) == (
        pytest.approx(1.8),
        pytest.approx(1.875),
    )
    assert (found.against, first.speed.steady.value) == (4, 1)
    assert second.efficiency.value == pytest.approx(4 * 1.8 / 8)
    assert second.efficiency_training.value == pytest.approx(4 * 1.875 / 8)
    assert first.is_baseline and not second.is_baseline
    assert records([first, second])[1]["baseline"] == "horovod on 4 workers"
    note = describe_relative(found)
    assert note and records([first, second])[1]["speedup_note"] == note
    plain = speed([synthetic.run("native", 1), *runs], "horovod", 4)
    assert (plain.baseline.strategy, describe_relative(plain)) == ("native", None)
    assert speed(runs[:1], "horovod", 4).steady.value is None, (
        "a row alone is no baseline of its own"
    )


def test_oversubscribed_points_have_no_speed_up_and_are_no_baseline():
    runs = [
        synthetic.run("horovod", 1, oversubscribed="1 worker with 4 cores on 2 cores"),
        synthetic.run("horovod", 2, throughput=190.0),
        synthetic.run("horovod", 4, oversubscribed="4 workers on 2 cores"),
    ]
    assert speed(runs, "horovod", 4).reason == ExcludedTimes(
        "4 workers on 2 cores", disturbed=False
    )
    assert speed(runs, "horovod", 2).reason.oversubscribed
    assert (
        speed([*runs, synthetic.run("single", 1)], "horovod", 2).baseline.strategy
        == "single"
    )


@pytest.mark.parametrize(
    ("runs", "reason", "training", "series"),
    [
        (
            [synthetic.run("single", 1), synthetic.run("virtual", 4)],
            "in turn",
            None,
            (1,),
        ),
        (
            [
                synthetic.run(
                    "horovod", n, epochs=1, throughput=None, training_seconds=60 / n
                )
                for n in (1, 2)
            ],
            "no-steady-epoch",
            pytest.approx(2),
            (1, 2),
        ),
    ],
)
def test_virtual_workers_and_single_epochs_have_no_steady_speed_up(
    runs, reason, training, series
):
    found = speed(runs, runs[1].result.strategy, runs[1].result.workers)
    assert (found.steady.value, found.training.value) == (None, training)
    assert found.reason == reason
    assert [each.different for each in series_of(measure_rows(group_runs(runs)))] == [
        series
    ]


def test_training_times_of_different_work_are_not_compared():
    runs = [
        synthetic.run("horovod", 1, epochs=6),
        synthetic.run("horovod", 2, epochs=3, throughput=190.0),
    ]
    found = speed(runs, "horovod", 2)
    assert found.steady.value == pytest.approx(1.9)
    assert (found.training.value, bool(found.training_reason)) == (None, True)
    sets = [
        imported_run(n, line=n, training_seconds=100.0, training_samples=1000 * n)
        for n in (1, 2)
    ]
    two = synthetic.summarise(sets)[1]
    assert (two.speed.steady.value, bool(two.speed.reason)) == (None, True)


def test_the_baseline_itself_is_one_without_chance():
    found = speed(synthetic.seeded((1, 2), ("horovod",)), "horovod", 1).steady
    assert (found.low, found.value, found.high) == (1, 1, 1)
    assert speed([synthetic.run("horovod", 1)], "horovod", 1).steady.low is None


def test_asynchronous_workers_have_no_speed_up_and_no_price_but_are_judged_by_quality():
    runs = [
        synthetic.run(name, workers, seed, throughput=100.0 * workers)
        for name, workers in (
            ("single", 1),
            ("parameter-server", 1),
            ("parameter-server", 4),
            ("horovod", 4),
        )
        for seed in range(3)
    ]
    found = speed(runs, "parameter-server", 4)
    assert (found.steady.value, found.training.value) == (None, None)
    assert found.reason == "asynchronous"
    findings = analyse("made", runs)
    rows = {(row.strategy, row.workers): row for row in findings.rows}
    assert speed(runs, "horovod", 4).steady.value == pytest.approx(4)
    assert rows["horovod", 4].price
    assert not rows["parameter-server", 4].price
    assert not rows["parameter-server", 1].price
    assert rows["parameter-server", 4].verdict.reference == key_of(
        "parameter-server", 1, {}
    )
    assert findings.advice.choice.strategy != "parameter-server"
    told = {
        record["strategy"]: record["synchronous"] for record in records(findings.rows)
    }
    assert told == {"single": True, "parameter-server": False, "horovod": True}
