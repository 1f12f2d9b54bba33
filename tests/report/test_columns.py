"""Measured columns as quantities that figures draw."""

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.columns import columns_of


def columns(runs):
    return {column.name: column for column in columns_of(analyse("made", runs).rows)}


def test_what_was_measured_is_there_and_what_was_not_is_absent():
    found = columns(synthetic.seeded((1, 2), ("horovod",)))
    assert {"throughput", "training_seconds", "wall_seconds", "cpu_percent"} <= set(found)
    assert "gpu_percent" not in found and "speedup" not in found and "workers" not in found
    assert columns_of([]) == []


def test_units_are_those_in_which_the_numbers_read_well():
    runs = [synthetic.run("horovod", n, training_seconds=7200.0 / n) for n in (1, 2)]
    rows = analyse("made", runs).rows
    found = columns(runs)
    assert found["training_seconds"].unit == "min"
    assert found["training_seconds"].of(rows[1]).value == pytest.approx(60.0)
    assert found["peak_memory_bytes"].unit == "GiB"
    assert found["peak_memory_bytes"].title == "Peak memory"
    assert found["peak_memory_bytes"].of(rows[0]).value == pytest.approx(900_000_000 / 2**30)


def test_intervals_come_along():
    runs = synthetic.seeded((1, 2), ("horovod",))
    row = analyse("made", runs).rows[0]
    found = columns(runs)["throughput"].of(row)
    assert found.low < found.value < found.high


def test_swept_numbers_are_no_measurements():
    assert "train.batch_size" not in columns(
        synthetic.seeded((1, 2), ("horovod",), swept={"train.batch_size": 8})
    )
