"""The epochs of a run as columns, so that those of ten thousand runs fit into memory and load in seconds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import polars as pl
from pydantic import ValidationError

from scalestudy.store.record_file import first_error
from scalestudy.store.records import EpochOutcome, EpochRecord
from scalestudy.store.run_folder import EPOCHS
from scalestudy.util.files import contents

_FIELDS = EpochRecord.model_fields
REQUIRED = [name for name, field in _FIELDS.items() if field.is_required()]
INTEGERS = [name for name, field in _FIELDS.items() if field.annotation is int]
FLOATS = [name for name, field in _FIELDS.items() if field.annotation in (float, float | None)]


class Epochs(Sequence[EpochRecord]):
    """Records of epochs, created on access; `column` gives one value of all epochs without creating any.

    Args:
        frame: A row per epoch; its column `validation` is a struct.
    """

    __slots__ = ("_frame",)

    def __init__(self, frame: pl.DataFrame | None = None) -> None:
        self._frame = pl.DataFrame() if frame is None else frame

    def __len__(self) -> int:
        return self._frame.height

    @overload
    def __getitem__(self, index: int) -> EpochRecord: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[EpochRecord, ...]: ...
    def __getitem__(self, index: int | slice) -> EpochRecord | tuple[EpochRecord, ...]:
        if isinstance(index, slice):
            return tuple(map(_record, self._frame[index].iter_rows(named=True)))
        return _record(self._frame.row(range(len(self))[index], named=True))

    def column(self, name: str, inner: str | None = None) -> list[Any]:
        """One value of all epochs, None where an epoch lacks it: `column("validation", "loss")`."""
        if name not in self._frame.columns:
            return [None] * len(self)
        column = self._frame[name]
        if inner is not None:
            if not isinstance(column.dtype, pl.Struct) or inner not in column.struct.fields:
                return [None] * len(self)
            column = column.struct.field(inner)
        return column.to_list()


def read_epochs(run: Path) -> tuple[Epochs, list[str]]:
    """Return the epochs in a run's folder, and an error for each line that cannot be parsed.

    An incomplete last line (still being written, or cut off by a kill) is left out.
    """
    try:
        data = contents(run / EPOCHS)
    except FileNotFoundError:
        return Epochs(), []
    except OSError as error:
        return Epochs(), [f"{EPOCHS} cannot be read: {error.strerror}"]
    data = data[: data.rfind(b"\n") + 1]
    frame = _frame(data)
    if frame is not None:
        return Epochs(frame), []
    good, wrong = [], []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            EpochRecord.model_validate_json(line)
            good.append(line)
        except ValidationError as error:
            wrong.append(f"{EPOCHS}, line {number}: {first_error(error)}")
    return Epochs(_frame(b"\n".join(good))), wrong


def value_of(record: EpochOutcome, path: Sequence[str]) -> Any:
    """Return the value at a path of keys in a record; None if it is missing."""
    value: Any = record
    for key in path:
        value = value.get(key) if isinstance(value, dict) else getattr(value, key, None)
    return value


def _frame(lines: bytes) -> pl.DataFrame | None:
    """The epochs as a table; None if a line is damaged or lacks a required value."""
    if not lines:
        return pl.DataFrame()
    try:
        # Not every epoch is evaluated, so the columns are inferred from all lines.
        frame = pl.read_ndjson(lines, infer_schema_length=None)
        if any(name not in frame.columns or frame[name].null_count() for name in REQUIRED):
            return None
        if not all(frame.schema[name].is_integer() for name in INTEGERS):
            return None
        # Values that are not finite are written as strings.
        frame = frame.cast({name: pl.Float64 for name in FLOATS if name in frame.columns})
        metrics = frame.schema.get("validation")
        if isinstance(metrics, pl.Struct) and metrics.fields:
            numbers = pl.Struct({field.name: pl.Float64 for field in metrics.fields})
            return frame.cast({"validation": numbers})
        return frame.drop("validation", strict=False) if metrics == pl.Struct({}) else None
    except pl.exceptions.PolarsError:
        return None


def _record(row: dict[str, Any]) -> EpochRecord:
    validation = row.get("validation") or {}
    recorded = {name: value for name, value in validation.items() if value is not None}
    return EpochRecord.model_validate(row | {"validation": recorded})
