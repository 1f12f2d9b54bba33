"""Parquet tables."""

from pathlib import Path

from scalestudy.errors import UserError
from scalestudy.features.imported.base import Reader, Reading, Wanted
from scalestudy.features.imported.delimited import MOST_ROWS
from scalestudy.features.imported.rows import Row, read_rows
from scalestudy.features.imported.text import shown


def _read(path: Path, wanted: Wanted) -> Reading:
    import polars as pl

    try:
        frame = pl.scan_parquet(path).head(MOST_ROWS).collect()
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        raise UserError(
            "a Parquet file",
            f"{shown(path.name)}: {shown(str(error))}",
            "Write it again, or take a CSV file.",
        ) from error
    rows = [Row(place, cells) for place, cells in enumerate(frame.to_dicts(), start=1)]
    return read_rows(path.name, "Parquet", rows, wanted)


READER = Reader("Parquet", lambda head: head.data.startswith(b"PAR1"), _read, "*.parquet")
