import math

import polars as pl
import pytest

import synthetic
from scalestudy.analysis.findings import phase_seconds
from scalestudy.analysis.runs import key_of, order
from scalestudy.analysis.study_table import columns, records, runs_table

CONTRACT = [
    *("strategy", "workers", "runs", "global_batch"),
    *("throughput", "training_seconds", "speedup", "efficiency", "quality"),
    "metric",
]


def test_a_row_is_a_point_without_its_seed_with_the_columns_that_scripts_rely_on():
    rows = records(
        synthetic.summarise(synthetic.seeded((1, 2), ("mirrored",), seeds=3))
    )
    names = list(rows[0])
    assert [name for name in names if name in CONTRACT] == CONTRACT
    assert {
        f"{column}{end}" for column in CONTRACT[4:9] for end in ("_low", "_high")
    } < set(names)
    assert [(row["strategy"], row["workers"], row["runs"]) for row in rows] == [
        ("mirrored", 1, 3),
        ("mirrored", 2, 3),
    ]
    assert (
        rows[1]["throughput_low"] < rows[1]["throughput"] < rows[1]["throughput_high"]
    )
    assert rows[1]["efficiency"] == pytest.approx(rows[1]["speedup"] / 2)


def test_one_run_leaves_every_interval_empty():
    for row in records(synthetic.summarise(synthetic.published())):
        assert {
            value for name, value in row.items() if name.endswith(("_low", "_high"))
        } == {None}


def test_other_swept_values_are_columns_and_rows_stand_in_reading_order():
    runs = [
        synthetic.run("horovod", 1, swept={"train.batch_size": size})
        for size in (32, 128, 8)
    ]
    assert [row["train.batch_size"] for row in records(synthetic.summarise(runs))] == [
        8,
        32,
        128,
    ]
    assert columns(["train.batch_size"])[:3] == [
        "strategy",
        "workers",
        "train.batch_size",
    ]
    runs = [
        synthetic.run(name, 1) for name in ("virtual", "horovod", "native", "single")
    ]
    assert [row.strategy for row in synthetic.summarise(runs)] == [
        "single",
        "native",
        "horovod",
        "virtual",
    ]
    sizes = ("64 KiB", "128 KiB", "8 MiB", "1 GiB", "all")
    keys = [
        key_of(strategy, workers, {"launch.bucket_size": size})
        for size in sizes
        for strategy in ("single", "horovod")
        for workers in (2, 10)
    ]
    assert sorted(set(keys), key=order) == keys


def test_what_is_not_a_number_becomes_null():
    row = records(
        synthetic.summarise([synthetic.run(quality=math.nan), synthetic.run(seed=1)])
    )[0]
    assert row["quality"] is None
    assert row["quality_low"] is None


def test_frames_keep_their_types_whatever_was_measured():
    alone, many = (
        synthetic.summary(synthetic.published()),
        synthetic.summary(synthetic.seeded()),
    )
    assert alone.schema == many.schema == synthetic.summary([]).schema
    assert alone["speedup_low"].dtype == pl.Float64
    runs = [
        synthetic.run("single", 1, swept={"train.xla": value})
        for value in (True, "auto")
    ]
    assert synthetic.summary(runs)["train.xla"].to_list() == ["True", "auto"]


def test_the_table_of_runs_has_a_row_a_run():
    frame = runs_table(
        synthetic.seeded((1, 2), ("horovod",), swept={"train.batch_size": 8})
    )
    assert frame.height == 6
    assert frame["train.batch_size"].to_list() == [8] * 6
    assert frame["folder"][0] == "points/horovod-w1-s0-8/run-1"


def test_phases_are_means_and_add_up_to_the_wall_time():
    runs = synthetic.seeded((2,), ("horovod",))
    phases = phase_seconds(runs)
    assert list(phases)[:3] == ["start-up", "compile", "steps"]
    assert sum(phases.values()) == pytest.approx(
        sum(run.result.wall_seconds for run in runs) / 3
    )
    short = [
        synthetic.Run(run.result.model_copy(update={"phases": {"training": 1.0}}))
        for run in runs
    ]
    assert phase_seconds(short)["other"] > 0
    assert phase_seconds([]) == {}


def test_the_direction_and_chance_of_a_quality_are_columns():
    runs = [
        synthetic.run(seed=seed, metric="mse", quality=0.02, chance=0.18 + 0.02 * seed)
        for seed in range(2)
    ]
    (row,) = records(synthetic.summarise(runs))
    assert (row["better"], row["constant_quality"]) == ("lower", pytest.approx(0.19))
    (row,) = records(synthetic.summarise([synthetic.run(metric="badness")]))
    assert (row["better"], row["constant_quality"]) == (None, None)
    assert runs_table(runs)["better"].to_list() == [
        None,
        None,
    ]  # as recorded, whatever the name


def test_the_best_epoch_of_an_error_is_not_taken_from_folders_that_took_the_highest_for_it():
    old = synthetic.run(metric="mse")
    new, score = (
        synthetic.run(seed=1, metric="mse", better="lower"),
        synthetic.run(seed=2),
    )
    assert runs_table([old, new, score])["best_epoch"].to_list() == [None, 6, 6]
