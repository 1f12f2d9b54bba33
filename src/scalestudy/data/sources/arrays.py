"""Arrays with Keras's names in an .npz file, and the digits of this package."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.config.settings import DataSettings
from scalestudy.data.images.form import Fit, store_as
from scalestudy.data.images.masks import MaskValues
from scalestudy.data.left_out import LeftOut
from scalestudy.data.samples import IGNORE, Array, Kind, Ranges, Sample
from scalestudy.data.sources.files import MOST_NAMES
from scalestudy.data.sources.source import (
    OF_FILES,
    Contents,
    SourceFindings,
    digest,
    files_digest,
    refuse_unused,
    require_classes,
    require_two,
)
from scalestudy.util.errors import UserError
from scalestudy.util.text import join_first

_SCALES = {"u1": 1 / 255, "u2": 1 / 65535}
"""Factors to [0, 1], by stored type; floats stay as they are."""
_SPLITS = {"train": "train", "validation": "val", "test": "test"}
"""Splits, and the ends of the names of their arrays."""


class NpzArray:
    """One array of an .npz file: `shape` and `dtype` from its header, values on demand.

    Raises:
        UserError: If it cannot be read, or contains Python objects.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        # Opened as an archive, since NumPy alone would read the values with the header.
        with (
            _refusing(path, f"{name}: "),
            zipfile.ZipFile(path) as archive,
            archive.open(f"{name}.npy") as stream,
        ):
            read = np.lib.format.read_array_header_2_0
            # Version 1.0 stores the length of its header in 2 bytes, later ones in 4.
            if np.lib.format.read_magic(stream) == (1, 0):
                read = np.lib.format.read_array_header_1_0
            self.shape, _, self.dtype = read(stream)
        if self.dtype.hasobject:
            raise UserError(
                "arrays of numbers",
                f"{name} in {path}, an array of Python objects",
                "Save it as one array of numbers. Objects are never unpickled, since that could run code.",
            )

    def __str__(self) -> str:
        return f"{self.name} of shape {list(self.shape)}, {self.dtype}, in {self.path}"

    def values(self) -> npt.NDArray[Any]:
        """Return the whole array; raises `UserError` if it is damaged, or does not fit into memory."""
        with (
            _refusing(self.path, f"{self.name}: "),
            np.load(self.path, allow_pickle=False) as archive,
        ):
            array: npt.NDArray[Any] = archive[f"{self.name}.npy"]
            return array


@contextmanager
def _refusing(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # zipfile, zlib and NumPy raise many types
        raise UserError(
            "an .npz file that can be read",
            f"{path}: {what}{error}",
            "Save it again with numpy.savez_compressed.",
        ) from error


Pairs = dict[str, tuple[NpzArray, NpzArray]]
"""Inputs and targets by split."""


def find_arrays(path: Path) -> tuple[Pairs, tuple[LeftOut, ...]]:
    """Return inputs and targets by split ("train" first), and the other members of the file.

    Raises:
        UserError: If it is not an .npz file, or lacks a training set or one array of a pair; as `NpzArray`.
    """
    with _refusing(path, ""), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    pairs: Pairs = {}
    for split, suffix in _SPLITS.items():
        x = f"x_{suffix}"
        y = f"y_{suffix}"
        if x in names and y in names:
            pairs[split] = (NpzArray(path, x), NpzArray(path, y))
        elif split == "train" or x in names or y in names:
            found = join_first(names) or "no arrays"
            raise UserError(
                f"arrays {x} and {y}",
                f"{found} in {path}",
                "Save the arrays as x_train and y_train, optionally x_val, y_val, x_test and y_test.",
            )
    taken: set[str] = set()
    for pair in pairs.values():
        taken.update(array.name for array in pair)
    others = tuple([name for name in names if name not in taken])
    if not others:
        return pairs, ()
    skipped = LeftOut("no arrays of a set", len(others), others[:MOST_NAMES])
    return pairs, (skipped,)


class Npz:
    """Source of the samples in an .npz file."""

    def __init__(self, path: Path, data: DataSettings) -> None:
        self.label = path.stem
        self.identity = str(path)
        self.fingerprint = files_digest(path.parent, [path])
        refuse_unused(data, OF_FILES, f"arrays: {path}")
        self._path = path
        self._fit = Fit.of(data)
        self._pairs, self._left_out = find_arrays(path)
        self._values = MaskValues()
        self._names: list[str] = []
        train_x, train_y = self._pairs["train"]
        for x, y in self._pairs.values():
            _check(x, y, train_x, train_y)
        self.kind: Kind = "masks" if _is_mask(train_x, train_y) else "classes"

    def contents(self) -> Contents:
        given: Ranges = {}
        count = 0
        for split, (x, _) in self._pairs.items():
            start = count
            count += x.shape[0]
            given[split] = (start, count)
        require_two(count, str(self._path))
        # All arrays of inputs are like the first, as `_check` found.
        first, _ = self._pairs["train"]
        self._dtype = _stored_type(first.dtype)
        _, height, width, *last_axis = first.shape
        size = (height, width)
        channels = last_axis[0] if last_axis else 1
        ignore = None
        if self.kind == "masks" and self._fit.pads(size):
            ignore = IGNORE
        if self.kind == "classes":
            self._labels = self._read_labels()
            self._names = self._class_names()
        return Contents(
            count=count,
            input_shape=(*(self._fit.size or size), channels),
            dtype=self._dtype,
            scale=_SCALES.get(self._dtype.str[1:], 1.0),
            names=None,
            # A training set alone divides nothing.
            given=given if len(given) > 1 else {},
            ignore=ignore,
        )

    def rows(self) -> Iterator[Sample]:
        for split, (x, y) in self._pairs.items():
            targets = y.values() if self.kind == "masks" else self._labels[split]
            pairs = zip(x.values(), targets, strict=True)
            for row, (values, target) in enumerate(pairs):
                image = store_as(values, self._dtype, f"{x.name}[{row}] in {x.path}")
                height, width = image.shape[:2]
                with_channels = image.reshape(height, width, -1)
                yield self._fit.image(with_channels), self._target(target, y, row)

    def class_names(self) -> list[str]:
        return self._names or self._values.class_names()

    def findings(self) -> SourceFindings:
        return SourceFindings(self._left_out)

    def _target(
        self,
        target: Any,
        y: NpzArray,
        row: int,
    ) -> Array | int:
        if self.kind == "classes":
            return int(target)
        mask = target.reshape(target.shape[:2])
        if mask.dtype == np.bool_:
            mask = mask.astype(np.uint8)
        indices = self._values.indices(mask, f"{y.name}[{row}] in {y.path}")
        return self._fit.mask(indices)

    def _read_labels(self) -> dict[str, Array]:
        labels = {}
        for split, (_, y) in self._pairs.items():
            values = y.values().reshape(-1)
            name = f"{y.name} in {y.path}"
            labels[split] = store_as(values, np.dtype(np.int32), name)
        return labels

    def _class_names(self) -> list[str]:
        count = len(np.unique(self._labels["train"]))
        numbers = np.arange(count)
        for split, labels in self._labels.items():
            strange = list(map(str, np.setdiff1d(labels, numbers)))
            if strange:
                _, y = self._pairs[split]
                raise UserError(
                    "classes numbered 0, 1, 2, ... without gaps, each of them in y_train",
                    f"{join_first(strange, 8)} in {y.name} of {self._path}",
                    "Renumber them, numpy.unique(y, return_inverse=True)[1], or add samples to x_train.",
                )
        names = list(map(str, range(count)))
        require_classes(names, str(self._path))
        return names


def _stored_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind == "f":
        return np.dtype(np.float32)
    # PyTorch takes arrays in the byte order of the machine only.
    return dtype.newbyteorder("=")


def _check(
    x: NpzArray,
    y: NpzArray,
    train_x: NpzArray,
    train_y: NpzArray,
) -> None:
    """Refuse arrays that are not images with targets, or that differ from the training set."""
    if not _is_image(x):
        raise UserError(
            "images of uint8, uint16 or floats, of shape [N, H, W] or [N, H, W, C] with channels last",
            str(x),
            "Save x.astype('uint8'), or numpy.moveaxis(x, 1, -1), which moves the channels.",
        )
    known = _is_class(y) or _is_mask(x, y)
    if y.shape[:1] != x.shape[:1] or not known:
        raise UserError(
            f"for each row of {x.name} an integer class, or an integer mask of the images' height and width",
            str(y),
            "Store the index of the class, numpy.argmax(y, axis=-1) of one-hot rows, as y.astype(int).",
        )
    same_shape = x.shape[1:] == train_x.shape[1:]
    alike = same_shape and x.dtype == train_x.dtype
    if not alike or _is_mask(x, y) != _is_mask(train_x, train_y):
        raise UserError(
            f"images and targets like those of {train_x} and {train_y}",
            f"{x} and {y}",
            "Store images of one shape and type, and all targets as classes, or all as masks.",
        )


def _is_image(x: NpzArray) -> bool:
    integer = x.dtype.newbyteorder("=") in (np.uint8, np.uint16)
    if x.dtype.kind != "f" and not integer:
        return False
    axes = len(x.shape)
    if axes not in (3, 4) or 0 in x.shape:
        return False
    # Grey images have no axis of channels.
    if axes == 3:
        return True
    # PyTorch keeps channels first; of an image they are few, its width is not.
    few_at_first = x.shape[1] in (1, 3)
    many_at_last = x.shape[3] > 4
    channels_first = few_at_first and many_at_last
    return not channels_first


def _is_class(y: NpzArray) -> bool:
    if y.dtype.kind not in "biu":
        return False
    # Keras's CIFAR-10 and CIFAR-100 have classes in a column, of shape [N, 1].
    return y.shape[1:] in ((), (1,))


def _is_mask(x: NpzArray, y: NpzArray) -> bool:
    if y.dtype.kind not in "biu":
        return False
    size = x.shape[1:3]
    with_channel = (*size, 1)
    return y.shape[1:] in (size, with_channel)


class Digits:
    """Source of the digits, with a class for each digit. Values 0..16 are stored unchanged."""

    kind: Kind = "classes"
    label = identity = "digits"
    fingerprint = digest("digits", 1)
    known_classes = 10

    def __init__(self, argument: str | None, data: DataSettings) -> None:
        if argument is not None:
            raise UserError(
                '"digits" without a count, since the set is fixed',
                f'"digits:{argument}"',
                'Write "digits".',
            )
        refuse_unused(data, OF_FILES, "digits, which are arrays")
        self._fit = Fit.of(data)

    def contents(self) -> Contents:
        size = self._fit.size or (8, 8)
        return Contents(
            count=1797,
            input_shape=(*size, 1),
            dtype=np.dtype(np.uint8),
            scale=1 / 16,
            names=None,
            given={},
        )

    def rows(self) -> Iterator[Sample]:
        with np.load(Path(__file__).with_name("digits.npz")) as digits:
            images, classes = digits["images"], digits["classes"]
        for values, target in zip(images, classes, strict=True):
            yield self._fit.image(values[:, :, None]), int(target)

    def class_names(self) -> list[str]:
        return [str(digit) for digit in range(10)]
