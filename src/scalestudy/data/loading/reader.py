"""Reading rows of a data set into memory that is handed over: all that the loader knows of where they lie."""

from typing import Protocol

import numpy as np

from scalestudy.data.columns import Array, Columns, Form, Forms, leaves, map_columns
from scalestudy.data.loading.order import Indices
from scalestudy.data.store.prepared import Prepared, Ragged


class Reader(Protocol):
    """Gives the rows of a data set, as a worker is to compute them. Several threads ask at once."""

    def forms(self, rows: Indices) -> tuple[Forms, Forms]:
        """Shape and type of one input and of one target, for all `rows` of a call, those of every worker."""

    def read(self, rows: Indices, epoch: int | None, inputs: Columns, targets: Columns) -> None:
        """Read rows, at least one, in their order.

        Args:
            rows: Row numbers of the data set, shape [b].
            epoch: From 0; what is drawn for a row follows from the seed, this and the row. None where nothing
                may be drawn: evaluation.
            inputs: Filled: arrays of shape [b, ...], as `forms` has said.
            targets: The same.

        Raises:
            IndexError: If there is no such row.
        """


class Stored:
    """Reads what is stored as arrays, as it is.

    Args:
        inputs: Memory-mapped, shape [N, ...]; or several by name. Sequences of different length are padded
            with zeros to the longest of a call.
        targets: The same.
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
    """What reads a prepared set."""
    return Stored(prepared.inputs, prepared.targets)  # mapped once


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
    # Any other mode copies twice, and without threads beside it: through a buffer, in case a row is missing.
    np.take(source, rows, axis=0, out=into, mode="clip")
