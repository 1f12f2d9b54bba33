"""Reading rows of a data set into memory that is handed over: all that the loader knows of where they lie."""

from typing import Protocol

import numpy as np

from scalestudy.data.columns import Array, Columns, Forms, each
from scalestudy.data.order import Indices
from scalestudy.data.prepared import Prepared


class Reader(Protocol):
    """Gives the rows of a data set, as a worker is to compute them. Several threads ask at once."""

    def forms(self, rows: Indices) -> tuple[Forms, Forms]:
        """Shape and type of one input and of one target.

        Args:
            rows: All rows of a call, those of every worker: the forms are the same for all of them.
        """

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
        inputs: Memory-mapped, shape [N, ...]; or several by name.
        targets: The same.
    """

    def __init__(self, inputs: Columns, targets: Columns) -> None:
        self._inputs, self._targets = inputs, targets
        self._forms = _forms(inputs), _forms(targets)

    def forms(self, rows: Indices) -> tuple[Forms, Forms]:
        """Those of the arrays."""
        return self._forms

    def read(self, rows: Indices, epoch: int | None, inputs: Columns, targets: Columns) -> None:
        """Copy the rows."""
        for source, into in ((self._inputs, inputs), (self._targets, targets)):
            each(lambda one, other: copy_rows(one, rows, other), source, into)


def reader_of(prepared: Prepared) -> Reader:
    """What reads a prepared set."""
    return Stored(prepared.inputs, prepared.targets)  # mapped once


def copy_rows(source: Array, rows: Indices, into: Array) -> None:
    """Copy rows of `source` (shape [N, ...]) to `into` (shape [rows, ...]).

    Raises:
        IndexError: If `source` has no such row.
    """
    if rows.min() < 0 or rows.max() >= len(source):
        raise IndexError(f"rows {rows.min()} to {rows.max()} of {len(source)}")
    # Any other mode copies twice, and without threads beside it: through a buffer, in case a row is missing.
    np.take(source, rows, axis=0, out=into, mode="clip")


def _forms(columns: Columns) -> Forms:
    forms: Forms = each(lambda array: (array.shape[1:], array.dtype), columns)
    return forms
