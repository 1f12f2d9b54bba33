"""The epochs of a run as columns, so that those of ten thousand runs fit into memory and load in seconds."""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

from pydantic import ValidationError

from scalestudy.store.record_file import first_error
from scalestudy.store.records import EpochOutcome, EpochRecord
from scalestudy.store.run_folder import EPOCHS
from scalestudy.util.files import contents

_FIELDS = [name for name in EpochRecord.model_fields if name != "validation"]


class Epochs(Sequence[EpochRecord]):
    """Records of epochs, created on access; `column` gives one value of all epochs without creating any."""

    __slots__ = ("_columns", "_length", "_validation")

    def __init__(self, records: Sequence[EpochRecord] = ()) -> None:
        self._length = len(records)
        self._columns = {name: _packed([getattr(record, name) for record in records]) for name in _FIELDS}
        metrics = dict.fromkeys(name for record in records for name in record.validation)
        self._validation = {
            name: _packed([record.validation.get(name) for record in records]) for name in metrics
        }

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> EpochRecord: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[EpochRecord, ...]: ...
    def __getitem__(self, index: int | slice) -> EpochRecord | tuple[EpochRecord, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        number = range(len(self))[index]
        values = {name: column[number] for name, column in self._columns.items()}
        measured = {name: column[number] for name, column in self._validation.items()}
        recorded = {name: value for name, value in measured.items() if value is not None}
        return EpochRecord.model_validate(values | {"validation": recorded})

    def column(self, name: str, inner: str | None = None) -> list[Any]:
        """One value of all epochs, None where an epoch lacks it: `column("validation", "loss")`."""
        columns = self._columns if inner is None else self._validation
        return list(columns.get(inner or name, [None] * len(self)))


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
    good, wrong = [], []
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            good.append(EpochRecord.model_validate_json(line))
        except ValidationError as error:
            wrong.append(f"{EPOCHS}, line {number}: {first_error(error)}")
    return Epochs(good), wrong


def value_of(record: EpochOutcome, path: Sequence[str]) -> Any:
    """Return the value at a path of keys in a record; None if it is missing."""
    value: Any = record
    for key in path:
        value = value.get(key) if isinstance(value, dict) else getattr(value, key, None)
    return value


def _packed(values: list[Any]) -> Sequence[Any]:
    """Values in eight bytes each if all are floats."""
    return array("d", values) if all(type(value) is float for value in values) else values
