"""Tables that people keep beside their images (CSV, TSV, JSON lines, Parquet), with columns found by name."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy.errors import UserError
from scalestudy.study.settings import DataSettings

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
USUAL = {
    "file": (
        "file", "filename", "file_name", "filepath", "file_path", "path", "image_path", "image", "image_name",
        "image_file", "image_id", "imageid", "img", "img_name", "name", "id", "id_code",
    ),
    "label": (
        "label", "labels", "class", "class_name", "target", "category", "label_name", "diagnosis", "species",
    ),
    "mask": ("mask", "mask_file", "mask_path", "mask_name", "segmentation", "mask_file_name"),
    "split": ("split", "set", "subset", "partition"),
    "group": ("group", "patient", "patient_id", "subject", "subject_id", "case", "case_id"),
}  # fmt: skip
_HEADER = 1_000_000
"""Bytes of the longest first line that is looked at."""


@dataclass(frozen=True)
class Columns:
    """The names of a table's columns by what they hold; `split` and `group` are None where there are none.

    Exactly one of `label` and `mask` is a name.
    """

    file: str
    label: str | None
    mask: str | None
    split: str | None
    group: str | None

    def __str__(self) -> str:
        told = {
            "files": self.file,
            "classes": self.label,
            "masks": self.mask,
            "splits": self.split,
            "groups": self.group,
        }
        return ", ".join(f"{what} in the column {name!r}" for what, name in told.items() if name is not None)


def columns(table: Path, data: DataSettings) -> Columns | None:
    """A table's columns by the keys of [data], else by usual names; None if it has no files or no targets.

    Only its first line is read.

    Raises:
        UserError: it has no column of a name that [data] says.
    """
    names = _names(table)
    found: dict[str, str | None] = {}
    for what, usual in USUAL.items():
        said = getattr(data, f"{what}_column", None)
        if said is not None and said not in names:
            raise UserError(
                f"a column {said!r}, as {what}_column under [data] says",
                f"{', '.join(map(repr, names))} in {table}",
                "Correct the key.",
            )
        small = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in reversed(names)}
        found[what] = said or next((small[name] for name in usual if name in small), None)
    if data.mask_column is not None and data.label_column is None:
        found["label"] = None
    elif found["label"] is not None:
        found["mask"] = None
    if found["file"] is None or (found["label"] is None and found["mask"] is None):
        return None
    return Columns(found["file"], found["label"], found["mask"], found["split"], found["group"])


def rows(table: Path) -> "pl.DataFrame":
    """All rows of a table, as texts without spaces around them; null where a cell is empty.

    Raises:
        UserError: it cannot be read.
    """
    import polars as pl

    try:
        if table.suffix.lower() == ".parquet":
            frame = pl.read_parquet(table)
        elif table.suffix.lower() == ".jsonl":
            frame = pl.read_ndjson(table)
        else:
            frame = pl.read_csv(table, infer_schema=False, separator=_separator(table), encoding="utf8-lossy")
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError("a table that can be read", f"{table}: {reason}", "Correct the table.") from error
    plain = [name for name, kind in frame.schema.items() if not kind.is_nested() and kind != pl.Binary]
    texts = frame.select(pl.col(plain).cast(pl.String).str.strip_chars())
    return texts.with_columns(pl.all().replace("", None))


def _names(table: Path) -> list[str]:
    try:
        if table.suffix.lower() == ".parquet":
            import polars as pl

            return list(pl.read_parquet_schema(table))
        with table.open(encoding="utf-8-sig", errors="replace") as stream:
            first = stream.readline(_HEADER)
        if table.suffix.lower() == ".jsonl":
            found: Any = json.loads(first)
            return list(found) if isinstance(found, dict) else []
        return next(csv.reader([first], delimiter=_separator(table)), [])
    except (OSError, ValueError, csv.Error, _polars_error()):
        return []


def _polars_error() -> type[Exception]:
    import polars as pl

    return pl.exceptions.PolarsError


def _separator(table: Path) -> str:
    with table.open(encoding="utf-8-sig", errors="replace") as stream:
        first = stream.readline(_HEADER)
    return max(",;\t", key=first.count)
