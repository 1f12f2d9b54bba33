"""A prepared data set: a folder with meta.json and its arrays, memory-mapped by everyone who reads it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data import left_out as of_left_out
from scalestudy.data.column import Column, Described, from_json, named, stem
from scalestudy.data.columns import leaves
from scalestudy.data.kinds import Kind
from scalestudy.data.left_out import LeftOut
from scalestudy.data.ragged import Ragged
from scalestudy.data.source import Ranges
from scalestudy.errors import UserError
from scalestudy.seals import opened

PREPARED_SCHEMA = 2
"""Raised with every change of what is stored of a source, so that stored sets are made anew."""


@dataclass(frozen=True)
class Prepared:
    """A data set on disk, opened.

    Attributes:
        path: Its folder.
        kind: "masks" (targets uint8 [N, H, W]), "classes" (targets int32 [N]), or "own" (as `columns` says).
        input_shape: (H, W, C) of every input; of an own one its shape, () of several by name.
        count: N, the number of samples.
        classes: Number of classes; 2 for binary masks.
        class_names: In the order of their indices.
        scale: Multiplies stored inputs into [0, 1] (1.0 for float inputs, which are kept as they are); None
            of own ones, which a model gets as they are.
        ignore: Class index of padded mask pixels (255), or None when there are none.
        given: Rows (start, stop) of "train", "validation" and "test", as far as the source brings them.
        names: A name for each sample, for messages.
        fingerprint: SHA-256 of what it was made from.
        arrays: SHA-256 of each array's file by its name; empty in a set that is older than these checksums.
        left_out: What lies in its source and was not taken.
        columns: Of kind "own": what the inputs are, and what the targets are.
        understood: How its source was understood, in words; empty where that goes without saying.
        groups: For each sample the group that it belongs to, none of which a split parts; or None.
    """

    path: Path
    kind: Kind
    input_shape: tuple[int, int, int]
    count: int
    classes: int
    class_names: tuple[str, ...]
    scale: float | None
    ignore: int | None
    given: Ranges
    names: tuple[str, ...]
    fingerprint: str
    arrays: dict[str, str] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    columns: tuple[Described, Described] | None = None
    groups: tuple[str, ...] | None = None
    understood: str = ""

    @classmethod
    def open(cls, path: Path | str) -> "Prepared":
        """Open a prepared folder.

        Raises:
            UserError: there is none, it is damaged, or it is of another version.
        """
        folder = Path(path)
        try:
            meta, _ = opened((folder / "meta.json").read_bytes())
            if meta["schema_version"] != PREPARED_SCHEMA:
                raise ValueError(f"its version is {meta['schema_version']}, not {PREPARED_SCHEMA}")
            count = int(meta["count"])
            names = meta["names"] or [str(row) for row in range(count)]
            groups = meta.get("groups")
            prepared = cls(
                path=folder,
                kind=meta["kind"],
                input_shape=tuple(meta["input_shape"]),
                count=count,
                classes=len(meta["class_names"]),
                class_names=tuple(meta["class_names"]),
                scale=None if meta["scale"] is None else float(meta["scale"]),
                ignore=meta["ignore"],
                given={split: (rows[0], rows[1]) for split, rows in meta["given"].items()},
                names=tuple(names),
                fingerprint=str(meta["fingerprint"]),
                arrays=dict(meta.get("arrays", {})),
                left_out=of_left_out.from_json(meta["left_out"]),
                columns=_columns(meta["columns"]) if meta["kind"] == "own" else None,
                groups=tuple(map(str, groups)) if groups is not None else None,
                understood=str(meta.get("understood", "")),
            )
            prepared._check(meta["dtype"])
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise UserError(
                "a prepared data set (meta.json, inputs.npy and targets.npy)",
                f"{folder}: {reason}",
                "Delete that folder and run again: it is made anew from its source.",
            ) from error
        return prepared

    @property
    def inputs(self) -> Any:
        """All inputs, memory-mapped and read-only: [N, H, W, C] of uint8, uint16 or float32.

        Of kind "own": an array or a `Ragged`, or a dictionary of these.
        """
        return _mapped(self.path / "inputs.npy") if self.columns is None else self._own("inputs", 0)

    @property
    def targets(self) -> Any:
        """All targets, memory-mapped and read-only: uint8 [N, H, W] or int32 [N].

        Of kind "own" as `inputs`.
        """
        return _mapped(self.path / "targets.npy") if self.columns is None else self._own("targets", 1)

    @property
    def class_of_each(self) -> npt.NDArray[Any] | None:
        """The class of each sample, shape [N]; None where samples have no single one."""
        own = self.classes and isinstance(self.targets, np.ndarray) and self.targets.ndim == 1
        return np.asarray(self.targets) if self.kind == "classes" or (self.kind == "own" and own) else None

    @property
    def bytes(self) -> int:
        """Bytes of all arrays: what a node's page cache holds once all was read."""
        return sum(int(array.nbytes) for array in (*leaves(self.inputs), *leaves(self.targets)))

    @property
    def has_sequences(self) -> bool:
        """Whether inputs or targets are sequences of different length."""
        return any(column.sequence for side in self.columns or () for _, column in named(side))

    def _own(self, side: str, index: int) -> Any:
        assert self.columns is not None
        described = self.columns[index]
        if isinstance(described, Column):
            return self._opened(described, stem(side, None))
        return {name: self._opened(column, stem(side, name)) for name, column in described.items()}

    def _opened(self, column: Column, name: str) -> npt.NDArray[Any] | Ragged:
        values = _mapped(self.path / f"{name}.npy")
        if not column.sequence:
            return values
        return Ragged(values, np.load(self.path / f"{name}.offsets.npy", allow_pickle=False))

    def _check(self, dtype: str | None) -> None:
        if self.kind not in ("masks", "classes", "own"):
            raise ValueError(f"its kind is {self.kind!r}")
        if self.columns is None:
            masks = self.kind == "masks"
            targets = (self.count, *self.input_shape[:2]) if masks else (self.count,)
            _check_array(self.path / "inputs.npy", (self.count, *self.input_shape), np.dtype(dtype))
            _check_array(self.path / "targets.npy", targets, np.dtype(np.uint8 if masks else np.int32))
        else:
            for side, described in zip(("inputs", "targets"), self.columns, strict=True):
                for name, column in named(described):
                    self._check_column(stem(side, name), column)
        if len(self.names) != self.count:
            raise ValueError(f"{len(self.names)} names for {self.count} samples")
        if self.groups is not None and len(self.groups) != self.count:
            raise ValueError(f"{len(self.groups)} groups for {self.count} samples")

    def _check_column(self, name: str, column: Column) -> None:
        file, dtype = self.path / f"{name}.npy", np.dtype(column.dtype)
        if column.sequence:
            _check_array(self.path / f"{name}.offsets.npy", (self.count + 1,), np.dtype(np.int64))
            elements = int(_mapped(self.path / f"{name}.offsets.npy")[-1])
            _check_array(file, (elements, *column.fixed), dtype)
        else:
            _check_array(file, (self.count, *column.fixed), dtype)


def _columns(stored: Any) -> tuple[Described, Described]:
    return from_json(stored["inputs"]), from_json(stored["targets"])


def _mapped(file: Path) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    return array


def _check_array(file: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    with file.open("rb") as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"{file.name} is of another format")
        found = np.lib.format.read_array_header_1_0(stream)
        start = stream.tell()
    if found != (shape, False, dtype):
        raise ValueError(f"{file.name} holds {list(found[0])} {found[2]}, not {list(shape)} {dtype}")
    expected = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if file.stat().st_size != expected:
        raise ValueError(f"{file.name} has {file.stat().st_size} bytes, not {expected}")
