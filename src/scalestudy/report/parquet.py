"""The report for data frames: the table, and a row a run, as Parquet files."""

from io import BytesIO
from typing import TYPE_CHECKING

from scalestudy.analysis.findings import Findings
from scalestudy.report.formats import Format, Medium

if TYPE_CHECKING:
    import polars as pl


def to_parquet(frame: "pl.DataFrame") -> bytes:
    """A frame as the bytes of a Parquet file (zstd), its columns' types kept."""
    stream = BytesIO()
    frame.write_parquet(stream)
    return stream.getvalue()


def _table(findings: Findings, _: Medium) -> bytes:
    from scalestudy.analysis.frames import as_frame

    return to_parquet(as_frame(findings.rows))


def _runs(findings: Findings, _: Medium) -> bytes:
    from scalestudy.analysis.frames import runs_table

    return to_parquet(runs_table(findings.runs))


TABLE = Format(_table)
RUNS = Format(_runs)
