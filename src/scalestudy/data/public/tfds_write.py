"""Samples of TensorFlow Datasets as what our readers know: files in folders, or arrays in an .npz file."""

import itertools
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from scalestudy.data.public.source import SET
from scalestudy.data.source import IGNORE

Write = Callable[[Any, Any], None]


class Files:
    """Images of differing sizes: the bytes that TFDS keeps, SPLIT/CLASS/NUMBER or SPLIT/images and masks.

    Args:
        folder: Where `set/` is made.
        image: The feature of the image, of TFDS.
        target: The feature of the target.
    """

    def __init__(self, folder: Path, image: Any, target: Any) -> None:
        self._folder, self._target = folder / SET, target
        self.masks = not hasattr(target, "num_classes") or len(target.shape) > 0

    @contextmanager
    def split(self, split: str, count: int) -> Iterator[Write]:
        """What writes the samples of a split, one by one."""
        digits = len(str(count))
        numbers = itertools.count()

        def write(image: bytes, target: Any) -> None:
            name = f"{next(numbers):0{digits}}"
            folder = self._folder / split / ("images" if self.masks else self._class(int(target)))
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}{_ending(image)}").write_bytes(image)
            if self.masks:
                masks = self._folder / split / "masks"
                masks.mkdir(exist_ok=True)
                Image.fromarray(_mask(target)).save(masks / f"{name}.png", compress_level=1)

        yield write

    def _class(self, target: int) -> str:
        """A folder's name that keeps the order of the classes."""
        return f"{target:0{len(str(self._target.num_classes - 1))}}"

    def finish(self) -> None:
        """Nothing is left to write."""

    def class_names(self) -> list[str] | None:
        """Names of the classes that there are, by index; None where they have none."""
        if self.masks:
            return None
        present = sorted(int(entry.name) for entry in (self._folder / "train").iterdir())
        return [self._target.int2str(index) for index in present]


class Arrays:
    """Images of one size: an .npz file, which is written sample by sample. Arguments as those of `Files`."""

    def __init__(self, folder: Path, image: Any, target: Any) -> None:
        self._image, self._target = image, target
        self.masks = not hasattr(target, "num_classes") or len(target.shape) > 0
        self._pack = zipfile.ZipFile(folder / f"{SET}.npz", "w", allowZip64=True)
        self._targets: dict[str, npt.NDArray[Any]] = {}

    @contextmanager
    def split(self, split: str, count: int) -> Iterator[Write]:
        """What writes the samples of a split, one by one."""
        name = {"train": "train", "validation": "val", "test": "test"}[split]
        targets: list[Any] = []
        header = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(self._image.np_dtype)),
            "fortran_order": False,
            "shape": (count, *self._image.shape),
        }
        with self._pack.open(f"x_{name}.npy", "w", force_zip64=True) as stream:
            np.lib.format.write_array_header_1_0(stream, header)

            def write(image: npt.NDArray[Any], target: Any) -> None:
                stream.write(np.ascontiguousarray(image).tobytes())
                targets.append(_mask(target) if self.masks else int(target))

            yield write
        self._targets[name] = np.stack(targets) if self.masks else np.asarray(targets, np.int64)

    def finish(self) -> None:
        """Write the targets behind the images."""
        if self.masks:
            _shift(list(self._targets.values()))
        for name, targets in self._targets.items():
            with self._pack.open(f"y_{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, targets)
        self._pack.close()

    def class_names(self) -> list[str] | None:
        """Names of the classes by index; None where they have none."""
        return None if self.masks else list(self._target.names)


def shift_masks(folder: Path) -> None:
    """Number classes from 0 where a set numbers them from 1 (the pets' 1, 2, 3)."""
    files = sorted((folder / SET).glob("*/masks/*.png"))
    masks = ((file, np.array(Image.open(file))) for file in files)
    lowest = min((int(mask.min()) for _, mask in masks), default=0)
    if lowest != 1:
        return
    for file in files:
        mask = np.array(Image.open(file))
        _shift([mask])
        Image.fromarray(mask).save(file, compress_level=1)


def _shift(masks: list[npt.NDArray[Any]]) -> None:
    """In place: one less, where no mask holds 0; what is not counted stays."""
    if min(int(mask.min()) for mask in masks) == 1:
        for mask in masks:
            mask[mask != IGNORE] -= 1


def _mask(mask: Any) -> npt.NDArray[Any]:
    """[H, W] of [H, W, 1] or [H, W]."""
    array = np.asarray(mask)
    return array[:, :, 0] if array.ndim == 3 else array


def _ending(content: bytes) -> str:
    return ".png" if content.startswith(b"\x89PNG") else ".jpg"
