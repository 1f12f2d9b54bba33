"""What goes into a model, and what should come out: one array or several by name; what is known of them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""Names of inputs and targets: they name files, and what goes into a Keras model."""
MOST_CLASSES = 10_000
"""Whole numbers up to this one are taken for classes."""


@dataclass(frozen=True)
class Column:
    """One input or target.

    Attributes:
        shape: Of one sample; sequences of different length begin with None.
        dtype: Name of the type that it is stored in, as "float32".
        lowest: Smallest value of all samples.
        highest: Largest value.
        vocabulary: Texts in the order of the numbers that they are stored as; empty where numbers were given.
    """

    shape: tuple[int | None, ...]
    dtype: str
    lowest: float
    highest: float
    vocabulary: tuple[str, ...] = ()

    @property
    def sequence(self) -> bool:
        """Whether samples are of different length."""
        return self.shape[:1] == (None,)

    @property
    def fixed(self) -> tuple[int, ...]:
        """The shape, of sequences that of one element."""
        return tuple(length for length in self.shape if length is not None)

    @property
    def classes(self) -> int:
        """How many classes whole numbers from 0 stand for; 0 where they are no classes."""
        whole = np.dtype(self.dtype).kind in "iu" and 0 <= self.lowest <= self.highest < MOST_CLASSES
        return len(self.vocabulary) or (int(self.highest) + 1 if whole else 0)


Described = Column | dict[str, Column]
"""One column, or several by name."""


def named(described: Described) -> list[tuple[str | None, Column]]:
    """The columns with their names: None where there is one that stands by itself."""
    return [(None, described)] if isinstance(described, Column) else list(described.items())


def stem(side: str, name: str | None) -> str:
    """First part of the names of a column's files: "inputs", "inputs.age"."""
    return side if name is None else f"{side}.{name}"


Array = npt.NDArray[Any]
Columns = Array | Mapping[str, Array]
"""Samples, one along the first axis: an array, or a dictionary of arrays."""
Form = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and type of one sample of an array."""
Forms = Form | Mapping[str, Form]

Out = TypeVar("Out")


def leaves(columns: Any) -> list[Any]:
    """What is in `columns`, in its order: one thing, or the values of a dictionary."""
    return list(columns.values()) if isinstance(columns, Mapping) else [columns]


def like(columns: Any, values: list[Out]) -> Any:
    """`values`, one for each of `leaves(columns)`, by the same names."""
    if isinstance(columns, Mapping):
        return dict(zip(columns, values, strict=True))
    (value,) = values
    return value


def map_columns(function: Callable[..., Out], *columns: Any) -> Any:
    """What `function` makes of each array, or of those that have the same name, by the same names."""
    first = columns[0]
    if isinstance(first, Mapping):
        return {name: function(*(column[name] for column in columns)) for name in first}
    return function(*columns)


def sample_bytes(forms: Forms) -> int:
    """Bytes of one sample."""
    return sum(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in leaves(forms))
