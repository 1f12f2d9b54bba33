"""A prepared data set: a folder with meta.json and its rows, shared by all processes of a node."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from scalestudy.data.columns import Described, from_json, leaves, named
from scalestudy.data.images.tiles import Tiling
from scalestudy.data.sources.left_out import LeftOut
from scalestudy.data.sources.left_out import from_json as left_out_from_json
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store import custom_columns
from scalestudy.data.store.encoded import Encoded
from scalestudy.data.store.files import index_name
from scalestudy.data.types import Ranges, Size
from scalestudy.util.errors import UserError

Storage = Literal["arrays", "encoded"]
"""How rows are stored: as two arrays, or each encoded and decoded as it is read."""
PREPARED_SCHEMA = 2
"""Raised with every change of what is stored of a source, so that stored sets are made anew."""


@dataclass(frozen=True)
class Prepared:
    """A data set on disk, opened.

    Attributes:
        path: Its folder.
        kind: "masks" (targets uint8 [N, H, W]), "classes" (targets int32 [N]) or "custom" (see `columns`).
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
        arrays: SHA-256 of each file of its rows by its name; empty in a set older than these checksums.
        left_out: What lies in its source and was not taken.
        remarks: What was done to its images that a person should know, in sentences.
        tiling: How large images were cut into its rows; or None.
        formats: Types and channels of its files, in words; None where there were none.
        size_counts: Sizes of its whole images, how many have each and the first of them; most frequent first.
        columns: Of kind "custom": what the inputs are, and what the targets are.
        storage: "arrays", or "encoded": rows that are decoded as they are read.
        dtype: Type of the stored inputs.
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
    storage: Storage = "arrays"
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.uint8))
    groups: tuple[str, ...] | None = None
    remarks: tuple[str, ...] = ()
    tiling: Tiling | None = None
    formats: str | None = None
    size_counts: tuple[tuple[Size, int, str], ...] = ()
    understood: str = ""

    @classmethod
    def open(cls, path: Path | str) -> "Prepared":
        """Open a prepared folder.

        Raises:
            UserError: there is none, it is damaged, or it is of another version.
        """
        folder = Path(path)
        try:
            meta = json.loads((folder / "meta.json").read_bytes())
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
                left_out=left_out_from_json(meta["left_out"]),
                storage=meta.get("storage", "arrays"),
                dtype=np.dtype(meta["dtype"] or np.uint8),
                columns=_columns(meta["columns"]) if meta["kind"] == "custom" else None,
                groups=tuple(map(str, groups)) if groups is not None else None,
                remarks=tuple(map(str, meta.get("remarks", ()))),
                formats=meta.get("formats"),
                size_counts=tuple(
                    ((int(size[0]), int(size[1])), int(count), str(first))
                    for size, count, first in meta.get("size_counts") or ()
                ),
                tiling=Tiling.from_json(meta["tiling"]) if meta.get("tiling") else None,
                understood=str(meta.get("understood", "")),
            )
            prepared._check(meta.get("bytes", {}))
        except (
            OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError,
        ) as error:  # fmt: skip
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise UserError(
                "a prepared data set (meta.json and the files of its rows)",
                f"{folder}: {reason}",
                "Delete that folder and run again: it is made anew from its source.",
            ) from error
        return prepared

    @property
    def inputs(self) -> Any:
        """All inputs [N, H, W, C], uint8, uint16 or float32: memory-mapped and read-only, or `Encoded`.

        Of kind "custom": an array or a `Ragged`, or a dictionary of these.
        """
        if self.columns is not None:
            return custom_columns.opened(self.path, "inputs", self.columns[0])
        return self._rows("inputs", self.input_shape, self.dtype)

    @property
    def targets(self) -> Any:
        """All targets, uint8 [N, H, W] or int32 [N], as `inputs`; classes are never encoded."""
        if self.columns is not None:
            return custom_columns.opened(self.path, "targets", self.columns[1])
        return self._rows("targets", *self._target)

    @property
    def class_of_each(self) -> npt.NDArray[Any] | None:
        """The class of each sample, shape [N]; None where samples have no single one."""
        single = self.classes and isinstance(self.targets, np.ndarray) and self.targets.ndim == 1
        return (
            np.asarray(self.targets) if self.kind == "classes" or (self.kind == "custom" and single) else None
        )

    @property
    def has_sequences(self) -> bool:
        """Whether inputs or targets are sequences of different length."""
        return any(column.sequence for side in self.columns or () for _, column in named(side))

    @property
    def bytes(self) -> int:
        """Bytes of the rows on disk: what a node's page cache holds once all was read."""
        if self.storage == "arrays":
            return self.decoded_bytes
        return sum((self.path / name).stat().st_size for name in self.files)

    @property
    def decoded_bytes(self) -> int:
        """Bytes of all rows as arrays."""
        if self.columns is not None:
            return sum(int(array.nbytes) for array in (*leaves(self.inputs), *leaves(self.targets)))
        one = math.prod(self.input_shape) * self.dtype.itemsize
        return self.count * (one + math.prod(self._target[0]) * self._target[1].itemsize)

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that hold its rows."""
        return tuple(self.arrays) or ("inputs.npy", "targets.npy")

    @property
    def _target(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of one target."""
        if self.kind == "masks":
            return self.input_shape[:2], np.dtype(np.uint8)
        return (), np.dtype(np.int32)

    def _rows(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        if self.storage == "encoded" and shape:
            # What is done with an array of samples can be done with it; that of pixels alone cannot.
            return cast(npt.NDArray[Any], Encoded(self.path, name, (self.count, *shape), dtype))
        array: npt.NDArray[Any] = np.load(self.path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        return array

    def _check(self, sizes: dict[str, int]) -> None:
        if self.kind not in ("masks", "classes", "custom"):
            raise ValueError(f"its kind is {self.kind!r}")
        for side, described in zip(("inputs", "targets"), self.columns or (), strict=False):
            custom_columns.check(self.path, side, described, self.count, _check_array)
        forms = {"inputs": (self.input_shape, self.dtype), "targets": self._target}
        if self.columns is not None:
            forms = {}
        for name, (shape, dtype) in forms.items():
            if self.storage == "encoded" and shape:
                _check_array(self.path / index_name(name), (self.count, 3), np.dtype(np.int64))
            else:
                _check_array(self.path / f"{name}.npy", (self.count, *shape), dtype)
        for name, size in sizes.items():
            if (stored := (self.path / name).stat().st_size) != size:
                raise ValueError(f"{name} has {stored} bytes, not {size}")
        if len(self.names) != self.count:
            raise ValueError(f"{len(self.names)} names for {self.count} samples")
        if self.groups is not None and len(self.groups) != self.count:
            raise ValueError(f"{len(self.groups)} groups for {self.count} samples")


def _columns(stored: Any) -> tuple[Described, Described]:
    return from_json(stored["inputs"]), from_json(stored["targets"])


def _check_array(file: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    with file.open("rb") as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"{file.name} is of another format")
        header = np.lib.format.read_array_header_1_0(stream)
        start = stream.tell()
    if header != (shape, False, dtype):
        raise ValueError(f"{file.name} holds {list(header[0])} {header[2]}, not {list(shape)} {dtype}")
    expected = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if file.stat().st_size != expected:
        raise ValueError(f"{file.name} has {file.stat().st_size} bytes, not {expected}")
