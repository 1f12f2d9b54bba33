"""Samples as arrays: inputs and targets, one or several by name, and the part of each worker in a step."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Kind = Literal["masks", "classes", "custom"]
"""A class for every pixel, a class for every sample, or samples that a task reads itself."""
Array = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]
"""Numbers of rows."""
Columns = Array | Mapping[str, Array]
"""Samples, one along the first axis: an array, or a dictionary of arrays."""
Form = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and type of one sample of an array."""
Forms = Form | Mapping[str, Form]
Sample = tuple[Array, Array | int]
"""One sample: an input [H, W, C], and a mask [H, W] (uint8) or a class."""
Size = tuple[int, int]
"""Height and width in pixels."""
Ranges = dict[str, tuple[int, int]]
"""Rows (start, stop) of "train", "validation" and "test", as far as a source defines them."""

Out = TypeVar("Out")

IGNORE = 255
"""Class index of ignored mask pixels, such as padding: losses and metrics leave them out."""
MOST_CLASSES = 255
"""Class indices of a mask are 0..254; 255 is ignored."""


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""Pattern for names of inputs and targets, which also name files and the inputs of a Keras model."""
MOST_COLUMN_CLASSES = 10_000
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
        if self.vocabulary:
            return len(self.vocabulary)
        are_integers = np.dtype(self.dtype).kind in "iu"
        if are_integers and 0 <= self.lowest <= self.highest < MOST_COLUMN_CLASSES:
            return int(self.highest) + 1
        return 0


Described = Column | dict[str, Column]
"""One column, or several by name."""


def named_columns(described: Described) -> list[tuple[str | None, Column]]:
    """Return the columns with their names; a single column has the name None."""
    if isinstance(described, Column):
        return [(None, described)]
    return list(described.items())


def stem(side: str, name: str | None) -> str:
    """Return the first part of a column's file names: "inputs" or "inputs.age"."""
    return side if name is None else f"{side}.{name}"


def leaves(columns: Any) -> list[Any]:
    """Return the values of a dictionary, in its order, or a list of the one value."""
    if isinstance(columns, Mapping):
        return list(columns.values())
    return [columns]


def like(columns: Any, values: list[Out]) -> Any:
    """Return `values`, one for each of `leaves(columns)`, in the structure of `columns`."""
    if isinstance(columns, Mapping):
        return dict(zip(columns, values, strict=True))
    (value,) = values
    return value


def map_columns(function: Callable[..., Out], *columns: Any) -> Any:
    """Apply `function` to the arrays of the same name; return its results by name."""
    first = columns[0]
    if not isinstance(first, Mapping):
        return function(*columns)
    results = {}
    for name in first:
        arrays = [column[name] for column in columns]
        results[name] = function(*arrays)
    return results


def sample_bytes(forms: Forms) -> int:
    """Return the bytes of one sample."""
    total = 0
    for shape, dtype in leaves(forms):
        total += math.prod(shape) * dtype.itemsize
    return total


def epoch_order(samples: Indices, seed: int, epoch: int) -> Indices:
    """Return the permutation of `samples` (shape [N]) for an epoch (from 0) and a seed."""
    # Philox is counter-based: seed and epoch are its key, so that no epoch needs the draws of another.
    philox = np.random.Philox(key=[seed, epoch])
    generator = np.random.Generator(philox)
    order = generator.permutation(len(samples))
    return samples[order]


def batches(samples: int, global_batch: int) -> Iterator[tuple[int, int]]:
    """Yield the rows [start, stop) of an epoch's order for each step; the last batch may be smaller."""
    for start in range(0, samples, global_batch):
        stop = min(start + global_batch, samples)
        yield start, stop


def worker_slice(batch: int, rank: int, size: int) -> tuple[int, int]:
    """Return the rows [start, stop) of worker `rank` of `size` in a global batch of `batch` rows.

    Slices are contiguous, cover the batch, and differ by at most one row.
    """
    # In integers, so that each slice begins exactly where the one before it stops.
    start = rank * batch // size
    stop = (rank + 1) * batch // size
    return start, stop


class Slice(NamedTuple):
    """One device's part of a step, or of each step of a call (consecutive steps of one size).

    The loader creates it with arrays for a whole call. The engine stages the arrays: it creates tensors on
    the device. For each step it takes a slice of that step and passes it to the layers.

    Attributes:
        inputs: Rows as stored, shape [b, H, W, C]; for a call [S, b, H, W, C], where only the first `steps`
            are used. A dictionary by name for several inputs.
        targets: Shape [b, ...] or [S, b, ...]; a dictionary by name for several targets.
        start: Position of the first row in the global batch.
        count: Number of rows that count: b, or 0 for an empty slice, which holds the first row of the global
            batch with weight 0.
        total: Rows of the global batch.
        step: Step of the run, from 0; for a call its first step.
        steps: Steps of the call.
        first: Whether no other slice of this step has used the same variables yet. False only for later parts
            of a slice, and for workers that are computed one after another.
    """

    inputs: Any
    targets: Any
    start: Any
    count: Any
    total: Any
    step: Any = 0
    steps: Any = 1
    first: Any = True

    def mapped(self, function: Callable[[Any], Any], **changes: Any) -> "Slice":
        """Return the slice with `function` applied to each array, and with these changed fields."""
        inputs = map_columns(function, self.inputs)
        targets = map_columns(function, self.targets)
        return self._replace(
            inputs=inputs,
            targets=targets,
            **changes,
        )


Call = tuple[Slice, ...]
"""One or more consecutive steps of one size: a slice for each device of a process."""
