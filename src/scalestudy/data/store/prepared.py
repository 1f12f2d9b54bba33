"""A prepared data set: a folder with meta.json and the rows, shared by all processes of a node."""

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, PlainSerializer, PlainValidator

from scalestudy.data.left_out import LeftOut
from scalestudy.data.samples import (
    Column,
    Described,
    Indices,
    Kind,
    Ranges,
    leaves,
    named_columns,
    stem,
)
from scalestudy.store.records import Record
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

AT_ONCE = 2**26
"""Maximum number of labels to count in one call."""
PREPARED_SCHEMA = 2
"""Increased with every change of the stored format, so that existing sets are prepared again."""
REBUILD = "Delete that folder and run again: it is prepared again from its source."


def _dtype(stored: Any) -> np.dtype[Any]:
    return np.dtype(stored or np.uint8)


class Prepared(Record):
    """An open data set on disk: its folder and the contents of its meta.json."""

    path: Path = Field(exclude=True)
    schema_version: Literal[2] = 2
    source: str
    """Description of the source."""
    fingerprint: str
    """SHA-256 of the source."""
    kind: Kind
    """Targets are uint8 [N, H, W] for "masks" and int32 [N] for "classes"; for "custom" see `columns`."""
    count: int
    """N, the number of samples."""
    input_shape: Annotated[
        tuple[int, int, int], PlainValidator(tuple), PlainSerializer(list)
    ]
    """(H, W, C) of every input; the shape of a custom input, () for several inputs."""
    dtype: Annotated[
        np.dtype[Any], PlainValidator(_dtype), PlainSerializer(lambda dtype: dtype.str)
    ] = np.dtype("u1")
    """Type of the stored inputs."""
    scale: float | None = None
    """Factor that scales stored inputs to [0, 1]; 1.0 for float inputs, None for custom inputs, which are not
    scaled."""
    ignore: int | None = None
    """Class index of ignored mask pixels (255), or None if there are none."""
    class_names: tuple[str, ...]
    """Names in the order of the class indices; two for binary masks."""
    given: Ranges
    """Rows (start, stop) of "train", "validation" and "test", as far as the source defines them."""
    row_names: tuple[str, ...] | None = Field(default=None, alias="names")
    groups: tuple[str, ...] | None = None
    """Group of each sample; a split keeps groups together."""
    remarks: tuple[str, ...] = ()
    """Sentences about the preparation that a user should know."""
    arrays: dict[str, str] = Field(default={})
    """SHA-256 of each file of rows by file name."""
    left_out: tuple[LeftOut, ...] = ()
    """Files of the source that were skipped."""
    understood: str = ""
    """How the layout of the source was interpreted, in words; may be empty."""
    columns: tuple[Described, Described] | None = None
    """For kind "custom": description of the inputs and of the targets."""

    @classmethod
    def open(cls, path: Path | str) -> "Prepared":
        """Open a prepared folder; raises `UserError` if it is missing, damaged, or of another version."""
        folder = Path(path)
        try:
            stored = json.loads((folder / "meta.json").read_bytes())
            prepared = cls.model_validate(stored | {"path": folder})
            prepared._check()
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise UserError(
                "a prepared data set (meta.json and the files of its rows)",
                f"{folder}: {error}",
                REBUILD,
            ) from error
        return prepared

    @classmethod
    def find(cls, path: Path) -> "Prepared | None":
        """Open a prepared folder; return None if it is missing or damaged."""
        try:
            return cls.open(path)
        except UserError:
            return None

    def write(self) -> None:
        """Write meta.json."""
        write_atomically(
            self.path / "meta.json",
            self.model_dump_json(by_alias=True) + "\n",
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for each sample, for messages."""
        return self.row_names or tuple(map(str, range(self.count)))

    @property
    def classes(self) -> int:
        """Number of classes; 2 for binary masks."""
        return len(self.class_names)

    @property
    def inputs(self) -> Any:
        """All inputs [N, H, W, C], uint8, uint16 or float32: memory-mapped and read-only.

        For kind "custom": an array or a `Ragged`, or a dictionary of these.
        """
        return _opened(self.path, "inputs", self._described[0])

    @property
    def targets(self) -> Any:
        """All targets, uint8 [N, H, W] or int32 [N], stored like `inputs`."""
        return _opened(self.path, "targets", self._described[1])

    @property
    def class_of_each(self) -> npt.NDArray[Any] | None:
        """Class of each sample, shape [N]; None if samples have no single class."""
        if self.kind == "masks" or not self.classes:
            return None
        targets = self.targets
        if isinstance(targets, np.ndarray) and targets.ndim == 1:
            return np.asarray(targets)
        return None

    @property
    def has_sequences(self) -> bool:
        """Whether inputs or targets are sequences of different lengths."""
        inputs, targets = self._described
        named = [*named_columns(inputs), *named_columns(targets)]
        return any(column.sequence for _, column in named)

    @property
    def bytes(self) -> int:
        """Bytes of the rows on disk, and in a node's page cache once all rows have been read."""
        arrays = [*leaves(self.inputs), *leaves(self.targets)]
        return sum(int(array.nbytes) for array in arrays)

    @property
    def _described(self) -> tuple[Described, Described]:
        """The columns of any kind; those of images and masks without their range."""
        if self.columns is not None:
            return self.columns
        inputs = Column(self.input_shape, self.dtype.name, 0, 0)
        if self.kind == "masks":
            return inputs, Column(self.input_shape[:2], "uint8", 0, 0)
        return inputs, Column((), "int32", 0, 0)

    def _check(self) -> None:
        inputs, targets = self._described
        _check_columns(self.path, "inputs", inputs, self.count)
        _check_columns(self.path, "targets", targets, self.count)
        for what, texts in (("names", self.names), ("groups", self.groups)):
            if texts is not None and len(texts) != self.count:
                raise ValueError(f"{len(texts)} {what} for {self.count} samples")


class Ragged:
    """N sequences of different lengths in two arrays.

    Args:
        values: Elements of all sequences, concatenated; shape [elements, ...].
        offsets: Start of each sequence and end of the last, shape [N + 1].
    """

    def __init__(
        self,
        values: npt.NDArray[Any],
        offsets: npt.NDArray[np.int64],
    ) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return int(self.values.nbytes + self.offsets.nbytes)

    def form(self, rows: Indices) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return shape and type of one sequence, padded to the longest of `rows` (at least one element)."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        longest = max(1, int(lengths.max()))
        shape = (longest, *self.values.shape[1:])
        return shape, self.values.dtype

    def copy(self, rows: Indices, into: npt.NDArray[Any]) -> None:
        """Copy sequences to `into` (shape [rows, length, ...]), padded with zeros.

        Raises:
            IndexError: If a row does not exist.
            ValueError: If a sequence is longer than `into`.
        """
        first = rows.min()
        last = rows.max()
        if first < 0 or last >= len(self):
            raise IndexError(f"rows {first} to {last} of {len(self)}")
        for row, out in zip(rows, into, strict=True):
            start = self.offsets[row]
            stop = self.offsets[row + 1]
            length = stop - start
            out[:length] = self.values[start:stop]
            # The memory is reused: it holds the values of an earlier batch.
            out[length:] = 0


def _opened(folder: Path, side: str, described: Described) -> Any:
    """Open custom "inputs" or "targets": one memory-mapped array, or several by name."""

    def opened(name: str | None, column: Column) -> npt.NDArray[Any] | Ragged:
        start = stem(side, name)
        values = _map(folder / f"{start}.npy")
        if not column.sequence:
            return values
        offsets = np.load(folder / f"{start}.offsets.npy", allow_pickle=False)
        return Ragged(values, offsets)

    if isinstance(described, Column):
        return opened(None, described)
    return {name: opened(name, column) for name, column in described.items()}


def _check_columns(
    folder: Path,
    side: str,
    described: Described,
    count: int,
) -> None:
    for name, column in named_columns(described):
        file = folder / f"{stem(side, name)}.npy"
        length = count
        if column.sequence:
            offsets = file.with_suffix(".offsets.npy")
            check_array(offsets, (count + 1,), np.dtype(np.int64))
            length = int(_map(offsets)[-1])
        check_array(file, (length, *column.fixed), np.dtype(column.dtype))


def write_header(file: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Write NumPy's header. It has room for a longer first axis, so its length does not depend on it."""
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": shape,
    }
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[arg-type]


def check_array(file: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Check the header and the size of an .npy file.

    Raises:
        OSError: If the file is missing or cannot be read.
        ValueError: If its format, shape, type or size differs.
    """
    # Mapped, not read: only the header and the size of the file are looked at.
    array = _map(file)
    expected = array.offset + array.nbytes  # type: ignore[attr-defined]
    as_described = array.shape == shape and array.dtype == dtype
    # NumPy refuses a file that is cut off; one that is too long has another's header.
    if not as_described or file.stat().st_size != expected:
        raise ValueError(
            f"{file.name} holds {list(array.shape)} {array.dtype}, not {list(shape)} {dtype}"
        )


def _map(file: Path) -> npt.NDArray[Any]:
    # Mapped, so that the processes of a node share one copy in its page cache. Unpickling could run code.
    array: npt.NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    return array


def class_counts(prepared: Prepared, rows: Indices) -> npt.NDArray[np.int64]:
    """Count the labels of each class in `rows`, without ignored ones; shape [classes]."""
    counts = np.zeros(prepared.classes, np.int64)
    for part in _parts(prepared, rows):
        labels = np.bincount(part.ravel(), minlength=prepared.classes)
        counts += labels[: prepared.classes]  # ignored labels are larger
    return counts


def weights_of(
    weights: Literal["balanced"] | tuple[float, ...] | None,
    prepared: Prepared,
    rows: Indices,
) -> tuple[float, ...] | None:
    """Return the class weights that a study asks for, one per class.

    "balanced" is n / (C · n_c) for n labels in C classes, n_c of them in class c (King and Zeng 2001). The
    mean over the labels of `rows` is 1, so the scale of the loss does not change.

    Raises:
        UserError: If there are not as many weights as classes, or a class does not occur.
    """
    if weights is None:
        return None
    names = ", ".join(prepared.class_names)
    if weights == "balanced":
        counts = class_counts(prepared, rows)
        absent = np.flatnonzero(counts == 0)
        if len(absent):
            missing = [prepared.class_names[index] for index in absent]
            raise UserError(
                'every class among the training samples, for class_weights = "balanced"',
                f"none of {', '.join(missing)}",
                "Set the weights, such as class_weights = [1.0, 2.0], or another seed under [data].",
            )
        balanced = counts.sum() / (len(counts) * counts)
        return tuple(balanced.tolist())
    # With all weights 0, nothing would be learned.
    if len(weights) != prepared.classes or not any(weights):
        raise UserError(
            f"{prepared.classes} class weights, some above 0, one for each class ({names})",
            f"{list(weights)}",
            "Correct class_weights under [train].",
        )
    return weights


def _parts(prepared: Prepared, rows: Indices) -> Iterator[npt.NDArray[Any]]:
    targets = prepared.targets
    # Some rows at a time: the labels of all masks may not fit into memory.
    labels_of_row = int(np.prod(targets.shape[1:], dtype=np.int64))
    size = max(1, AT_ONCE // labels_of_row)
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        # In the order of the file, which is read from disk.
        yield targets[np.sort(part)]
