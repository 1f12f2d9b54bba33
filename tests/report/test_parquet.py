"""The tables as Parquet files, as another program reads them."""

from io import BytesIO

import polars as pl
import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.frames import as_frame, runs_table
from scalestudy.report.formats import Medium
from scalestudy.report.parquet import RUNS, TABLE


@pytest.fixture(scope="module")
def findings():
    return analyse("made", synthetic.seeded((1, 2), ("horovod",), seeds=2, swept={"train.batch_size": 8}))


def test_the_table_comes_back_with_its_types(findings):
    frame = pl.read_parquet(BytesIO(TABLE.render(findings, Medium())))
    assert frame.equals(as_frame(findings.rows))
    assert frame.schema["workers"] == pl.Int64 and frame.schema["train.batch_size"] == pl.Int64


def test_runs_have_a_row_each(findings):
    frame = pl.read_parquet(BytesIO(RUNS.render(findings, Medium())))
    assert frame.equals(runs_table(findings.runs))
    assert frame.height == 4 and set(frame["seed"]) == {0, 1}


def test_a_study_without_results_is_a_table_without_rows():
    frame = pl.read_parquet(BytesIO(TABLE.render(analyse("made", []), Medium())))
    assert frame.height == 0 and "speedup" in frame.columns
