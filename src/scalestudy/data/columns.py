"""Inputs and targets of a model: one array, or several by name, and their description."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""Pattern for names of inputs and targets, which also name files and the inputs of a Keras model."""
MOST_CLASSES = 10_000
"""Columns of whole numbers from 0 to below this one are treated as classes."""


@dataclass(frozen=True)
class Column:
    """One input or target.

    Attributes:
        shape: Shape of one sample; the first axis is None for sequences of different lengths.
        dtype: Name of the stored type, such as "float32".
        lowest: Smallest value of all samples.
        highest: Largest value of all samples.
        vocabulary: Strings in the order of the numbers that they are stored as; empty for numeric columns.
    """

    shape: tuple[int | None, ...]
    dtype: str
    lowest: float
    highest: float
    vocabulary: tuple[str, ...] = ()

    @property
    def sequence(self) -> bool:
        """Whether samples have different lengths."""
        return self.shape[:1] == (None,)

    @property
    def fixed(self) -> tuple[int, ...]:
        """Shape of a sample; for sequences, shape of one element."""
        return tuple(length for length in self.shape if length is not None)

    @property
    def classes(self) -> int:
        """Number of classes; 0 if the values are not classes."""
        whole = np.dtype(self.dtype).kind in "iu" and 0 <= self.lowest <= self.highest < MOST_CLASSES
        return len(self.vocabulary) or (int(self.highest) + 1 if whole else 0)


Described = Column | dict[str, Column]
"""One column, or several by name."""


def named(described: Described) -> list[tuple[str | None, Column]]:
    """Return the columns with their names; a single column has the name None."""
    return [(None, described)] if isinstance(described, Column) else list(described.items())


def stem(side: str, name: str | None) -> str:
    """Return the first part of a column's file names: "inputs" or "inputs.age"."""
    return side if name is None else f"{side}.{name}"


Array = npt.NDArray[Any]
Columns = Array | Mapping[str, Array]
"""Samples, one along the first axis: an array, or a dictionary of arrays."""
Form = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and type of one sample of an array."""
Forms = Form | Mapping[str, Form]

Out = TypeVar("Out")


def leaves(columns: Any) -> list[Any]:
    """Return the values of a dictionary, in its order, or a list of the one value."""
    return list(columns.values()) if isinstance(columns, Mapping) else [columns]


def like(columns: Any, values: list[Out]) -> Any:
    """Return `values`, one for each of `leaves(columns)`, in the structure of `columns`."""
    if isinstance(columns, Mapping):
        return dict(zip(columns, values, strict=True))
    (value,) = values
    return value


def map_columns(function: Callable[..., Out], *columns: Any) -> Any:
    """Apply `function` to the arrays of the same name; return its results by name."""
    first = columns[0]
    if isinstance(first, Mapping):
        return {name: function(*(column[name] for column in columns)) for name in first}
    return function(*columns)


def sample_bytes(forms: Forms) -> int:
    """Return the bytes of one sample."""
    return sum(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in leaves(forms))
