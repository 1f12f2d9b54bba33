"""Rows that differ in a column without a role are no repeats."""

import pytest

from scalestudy.analysis.findings import analyse


@pytest.mark.parametrize(
    ("header", "values"),
    [
        ("cluster", ("A", "B")),
        ("cpus-per-task", (2, 4, 8, 16)),
        ("learning_rate", (0.1, 0.2)),
        ("epochs", (5, 10)),
    ],
)
def test_rows_that_differ_in_a_setting_are_separate_rows_and_this_is_said(
    read, header: str, values: tuple
):
    rows = "".join(f"{n},{value},{100 / n}\n" for n in (1, 2) for value in values)
    imported = read({"t.csv": f"gpus,{header},time\n{rows}"})
    assert [run.result.swept for run in imported.runs] == [
        {header: value} for value in values
    ] * 2
    assert f"Rows that differ in {header} are separate rows." in imported.readings[0]
    assert {row.runs for row in analyse("t", imported.runs).rows} == {1}


@pytest.mark.parametrize(
    ("header", "values"),
    [
        ("run", (1, 2, 3)),
        ("job_id", (71, 72, 75)),
        ("gpu_util", (83, 85, 84)),
        ("test_time", (1.5, 1.6, 1.4)),
    ],
)
def test_repeats_stay_repeats_beside_their_number_or_another_measurement(
    read, header: str, values: tuple
):
    rows = "".join(f"{n},{value},{100 / n}\n" for n in (1, 2) for value in values)
    imported = read({"t.csv": f"gpus,{header},time\n{rows}"})
    assert f"Not used: {header}." in imported.readings[0]
    assert any("count as repeats" in text for text in imported.readings)
    assert {row.runs for row in analyse("t", imported.runs).rows} == {3}


def test_rows_of_two_clusters_are_not_compared_even_if_no_point_was_measured_on_both(
    read,
):
    imported = read(
        {"t.csv": "gpus,cluster,img/s\n1,A,100\n2,A,190\n4,B,700\n8,B,1300\n"}
    )
    rows = {row.workers: row for row in analyse("t", imported.runs).rows}
    assert "Rows that differ in cluster are separate rows." in imported.readings[0]
    assert rows[2].speed.steady.value == pytest.approx(1.9)
    assert rows[8].speed.baseline.label == "unnamed on 4 workers (cluster = B)"
