"""Read rows of a data set into given memory: the interface between the loader and storage."""

from typing import Protocol

import numpy as np

from scalestudy.data.columns import Array, Columns, Form, Forms, leaves, map_columns
from scalestudy.data.loading.order import Indices
from scalestudy.data.store.prepared import Prepared, Ragged


class Reader(Protocol):
    """Reads rows of a data set in the form that a model receives. Must be thread-safe."""

    def forms(self, rows: Indices) -> tuple[Forms, Forms]:
        """Return shape and type of one input and one target; `rows` are a call's rows of all workers."""

    def read(self, rows: Indices, epoch: int | None, inputs: Columns, targets: Columns) -> None:
        """Read rows in their order.

        Args:
            rows: Row numbers of the data set, shape [b] with b ≥ 1.
            epoch: Number of the epoch, from 0; augmentation depends on the seed, the epoch and the row. None
                for no augmentation (evaluation).
            inputs: Output arrays of shape [b, ...], as given by `forms`.
            targets: The same for the targets.

        Raises:
            IndexError: If a row does not exist.
        """


class Stored:
    """Reads stored arrays unchanged.

    Args:
        inputs: Memory-mapped array [N, ...], or several by name. Sequences are padded with zeros to the
            longest of a call.
        targets: The same for the targets.
    """

    def __init__(self, inputs: Columns, targets: Columns) -> None:
        self._inputs, self._targets = inputs, targets
        ragged = any(isinstance(column, Ragged) for column in (*leaves(inputs), *leaves(targets)))
        self._forms = None if ragged else self._of(np.arange(0))

    def forms(self, rows: Indices) -> tuple[Forms, Forms]:
        return self._forms or self._of(rows)

    def read(self, rows: Indices, epoch: int | None, inputs: Columns, targets: Columns) -> None:
        for source, into in ((self._inputs, inputs), (self._targets, targets)):
            map_columns(lambda column, array: copy_rows(column, rows, array), source, into)

    def _of(self, rows: Indices) -> tuple[Forms, Forms]:
        def form(column: Array | Ragged) -> Form:
            return column.form(rows) if isinstance(column, Ragged) else (column.shape[1:], column.dtype)

        return map_columns(form, self._inputs), map_columns(form, self._targets)


def reader_of(prepared: Prepared) -> Reader:
    """Return a reader for a prepared set."""
    return Stored(prepared.inputs, prepared.targets)  # opens the files only once


def copy_rows(source: Array | Ragged, rows: Indices, into: Array) -> None:
    """Copy rows of `source` (shape [N, ...]) to `into` (shape [rows, ...]).

    Raises:
        IndexError: If `source` has no such row.
    """
    if isinstance(source, Ragged):
        source.copy(rows, into)
        return
    if rows.min() < 0 or rows.max() >= len(source):
        raise IndexError(f"rows {rows.min()} to {rows.max()} of {len(source)}")
    # mode="raise" would copy through a buffer, in case a row is missing.
    np.take(source, rows, axis=0, out=into, mode="clip")
