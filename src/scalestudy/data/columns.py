"""What goes into a model, and what should come out: one array, or several by name."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

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


def each(function: Callable[..., Out], *columns: Any) -> Any:
    """What `function` makes of each array, or of those that have the same name, by the same names."""
    first = columns[0]
    if isinstance(first, Mapping):
        return {name: function(*(column[name] for column in columns)) for name in first}
    return function(*columns)


def sample_bytes(forms: Forms) -> int:
    """Bytes of one sample."""
    return sum(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in leaves(forms))
