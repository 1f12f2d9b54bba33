"""Writes a set of TensorFlow Datasets out: `python -m NAME kind|export SOURCE [FOLDER]`.

The one process that imports TFDS. Lines of JSON tell how far it is, and at last what there is.
"""

import itertools
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from scalestudy.data.sources.layouts.names import SPLITS
from scalestudy.data.sources.public.base import SET
from scalestudy.data.sources.public.tfds import Request, chosen, request_of
from scalestudy.data.types import IGNORE
from scalestudy.util.errors import ScalestudyError, UserError

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


EVERY = 500
"""Samples between two lines of progress."""
NOT_TAKEN = "a split of another name than train, validation and test"
UNLABELLED = "a split without labels"


def main() -> None:
    """Answer on standard output; refusals too, as {"expected": ..., "received": ..., "action": ...}."""
    what, text, *rest = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    try:
        request = request_of(text.partition(":")[2])
        builder = _builder(request)
        image, target, kind = chosen(_kinds(builder), request.feature, text)
        if what == "kind":
            answer: dict[str, Any] = {"kind": kind}
        else:
            _prepare(builder, request)
            answer = _export(builder, image, target, Path(rest[0]), out)
    except ScalestudyError as error:
        answer = {"expected": error.expected, "received": error.received, "action": error.action}
    print(json.dumps(answer), file=out)


def _builder(request: Request) -> Any:
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise UserError(
            "TensorFlow Datasets (and TensorFlow), which read this source once",
            f"no {error.name} in this environment" if error.name else str(error),
            "Run: pip install 'scalestudy[tfds]'; or prepare it where that is, with the same `cache`.",
        ) from error
    tfds.disable_progress_bar()
    try:
        return tfds.builder_from_directory(request.name) if request.folder else tfds.builder(request.name)
    except (tfds.core.DatasetNotFoundError, ValueError, AssertionError) as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            "a set that TensorFlow Datasets knows, as NAME or NAME/CONFIG:VERSION",
            f"{request.text}: {reason}",
            "Correct the name, the configuration or the version (`tfds.list_builders()` lists names).",
        ) from error


def _prepare(builder: Any, request: Request) -> None:
    """Have TFDS download and prepare the set, where no local copy is prepared."""
    try:
        builder.download_and_prepare()
    except ScalestudyError:
        raise
    except Exception as error:  # TFDS and its downloaders raise many kinds
        lines = [line for line in str(error).splitlines() if line.strip()]
        reason = f"{type(error).__name__}: {lines[0][:300] if lines else ''}"
        raise UserError(
            f"{request.name} prepared by TensorFlow Datasets in {builder.data_path}",
            reason,
            "Where there is no network, copy its folder here and name it: tfds:/FOLDER/NAME/VERSION (or set "
            "TFDS_DATA_DIR). Sets that must be fetched by hand say so on TFDS's page.",
        ) from error


def _kinds(builder: Any) -> dict[str, str]:
    features = builder.info.features
    return {name: type(feature).__name__ for name, feature in getattr(features, "items", dict)()}


def _export(builder: Any, image: str, target: str, folder: Path, out: Any) -> dict[str, Any]:
    names = {name: split for split, others in SPLITS.items() for name in others}
    split_names = {name: names.get(name.lower()) for name in builder.info.splits}
    taken = {split: name for name, split in split_names.items() if split}
    if "train" not in taken:
        raise UserError(
            "a set with a split train",
            f"{builder.info.full_name} with {', '.join(split_names) or 'none'}",
            "Write the set out as a folder or an .npz file.",
        )
    left_out = [(name, NOT_TAKEN) for name, split in split_names.items() if not split]
    features = builder.info.features
    kind = Arrays if None not in features[image].shape else Files
    writer = kind(folder, features[image], features[target])
    for split in [] if writer.masks else [split for split in taken if split != "train"]:
        first = next(_samples(builder, taken[split], image, True), None)
        if first is None or int(first[target]) < 0:  # withheld: -1 throughout
            left_out.append((taken.pop(split), UNLABELLED))
    counts = {split: builder.info.splits[taken[split]].num_examples for split in SPLITS if split in taken}
    done, total = 0, sum(counts.values())
    for split, count in counts.items():
        with writer.split(split, count) as write:
            for sample in _samples(builder, taken[split], image, kind is Files):
                if not writer.masks and int(sample[target]) < 0:
                    raise UserError(
                        "a label for every sample",
                        f"-1 in {builder.info.full_name}, {split}",
                        "Name another set.",
                    )
                write(sample[image], sample[target])
                done += 1
                if done % EVERY == 0 or done == total:
                    print(json.dumps({"done": done, "total": total}), file=out)
    writer.finish()
    if writer.masks:
        shift_masks(folder)
    return {"set": builder.info.full_name, "class_names": writer.class_names(), "left_out": left_out}


def _samples(builder: Any, split: str, image: str, encoded: bool) -> Iterator[dict[str, Any]]:
    """Samples of a split in their order on disk; images as the bytes of their files where asked for."""
    import tensorflow_datasets as tfds

    decoders = {image: tfds.decode.SkipDecoding()} if encoded else None
    # Files that can be read at random have one way, files that are read in a row the other.
    if builder.info.file_format.value in ("array_record", "parquet"):
        yield from builder.as_data_source(split=split, decoders=decoders)
    else:
        reading = tfds.ReadConfig(interleave_cycle_length=1)
        yield from tfds.as_numpy(
            builder.as_dataset(split=split, decoders=decoders, shuffle_files=False, read_config=reading)
        )


if __name__ == "__main__":
    main()
