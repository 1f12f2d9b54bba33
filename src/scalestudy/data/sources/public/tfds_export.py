"""Export a set of TensorFlow Datasets: `python -m NAME kind|export SOURCE [FOLDER]`.

Only this process imports TFDS. It prints lines of JSON: progress, and finally the answer.
"""

import json
import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from scalestudy.data.sources.names import SPLITS
from scalestudy.data.sources.process import KEY
from scalestudy.data.sources.public.base import SET
from scalestudy.data.sources.public.tfds import TfdsName, chosen, name_of
from scalestudy.data.types import IGNORE, Array
from scalestudy.util.errors import ScalestudyError, UserError

Say = Callable[[dict[str, Any]], None]
MOST_BYTES = 1 << 30
"""Images of one size are exported as an .npz file if their total size is smaller than this, else as files."""
EVERY = 500
"""Number of samples between two lines of progress."""
NOT_TAKEN = "a split of another name than train, validation and test"
UNLABELLED = "a split without labels"


def main() -> None:
    """Print the answer on standard output; errors as {"expected": ..., "received": ..., "action": ...}."""
    what, text, *rest = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # redirect the output of libraries

    def say(message: dict[str, Any]) -> None:
        print(json.dumps({KEY: message}), file=out)

    try:
        name = name_of(text.partition(":")[2])
        builder = _builder(name)
        items: Any = getattr(builder.info.features, "items", dict)()
        kinds = {feature: type(value).__name__ for feature, value in items}
        image, target, kind = chosen(kinds, name.feature, text)
        if what == "kind":
            say({"kind": kind})
        else:
            _prepare(builder, name)
            say(_export(builder, image, target, Path(rest[0]), say, masks=kind == "masks"))
    except ScalestudyError as error:
        say({"expected": error.expected, "received": error.received, "action": error.action})


def _builder(name: TfdsName) -> Any:
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise UserError(
            "TensorFlow Datasets (and TensorFlow), which read this source",
            f"no {error.name} in this environment" if error.name else str(error),
            "Run: pip install 'scalestudy[tfds]'; or prepare the data where it is installed, with the same"
            " `cache`.",
        ) from error
    tfds.disable_progress_bar()
    try:
        return tfds.builder_from_directory(name.name) if name.folder else tfds.builder(name.name)
    except (tfds.core.DatasetNotFoundError, ValueError, AssertionError, OSError) as error:
        raise UserError(
            "a data set of TensorFlow Datasets, as NAME or NAME/CONFIG:VERSION",
            f"{name.text}: {' '.join(str(error).split())[:300]}",
            "Correct the name, the configuration or the version (`tfds.list_builders()` lists names).",
        ) from error


def _prepare(builder: Any, name: TfdsName) -> None:
    """Let TFDS download and prepare the set, unless there is a prepared local copy."""
    try:
        builder.download_and_prepare()
    except Exception as error:  # TFDS and its downloaders raise many types
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise UserError(
            f"{name.name} prepared by TensorFlow Datasets in {builder.data_path}",
            f"{type(error).__name__}: {lines[0][:300] if lines else ''}",
            "Where there is no network, copy its folder here and name it: tfds:/FOLDER/NAME/VERSION (or set "
            "TFDS_DATA_DIR). Data sets that must be downloaded by hand are marked on the site of TFDS.",
        ) from error


def _export(builder: Any, image: str, target: str, folder: Path, say: Say, *, masks: bool) -> dict[str, Any]:
    """Write all samples as one .npz file, or as image files with the bytes that TFDS stores."""
    taken, left_out = _splits(builder, image, target, masks=masks)
    features = builder.info.features
    counts = {split: builder.info.splits[name].num_examples for split, name in taken.items()}
    done, total = 0, sum(counts.values())
    size = math.prod(length or 0 for length in features[image].shape)
    as_arrays = 0 < size * np.dtype(features[image].np_dtype).itemsize * total < MOST_BYTES
    columns: dict[str, list[Any]] = defaultdict(list)
    classes: set[int] = set()
    for split, name in taken.items():
        for number, sample in enumerate(_samples(builder, name, image, encoded=not as_arrays)):
            value: Any = _mask(sample[target]) if masks else _class(sample[target], name)
            if not masks:
                classes.add(value)
            if as_arrays:
                suffix = "val" if split == "validation" else split
                columns[f"x_{suffix}"].append(sample[image])
                columns[f"y_{suffix}"].append(value)
            else:
                _write(folder / SET / split, f"{number:0{len(str(counts[split]))}}", sample[image], value)
            done += 1
            if done % EVERY == 0 or done == total:
                say({"done": done, "all": total})
    if as_arrays:
        arrays: dict[str, Any] = {name: np.stack(values) for name, values in columns.items()}
        if masks:
            _from_zero([values for name, values in arrays.items() if name.startswith("y")])
        np.savez(folder / f"{SET}.npz", **arrays)
    elif masks:
        files = sorted((folder / SET).glob("*/masks/*.png"))
        lowest = min((int(np.asarray(Image.open(file)).min()) for file in files), default=0)
        for file in files if lowest == 1 else ():
            mask = np.array(Image.open(file))
            _from_zero([mask], lowest)
            Image.fromarray(mask).save(file, compress_level=1)
    names = None if masks else [features[target].int2str(index) for index in sorted(classes)]
    return {"set": builder.info.full_name, "class_names": names, "left_out": left_out}


def _splits(
    builder: Any, image: str, target: str, *, masks: bool
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return TFDS's names of the splits, and the skipped splits with the reason."""
    known = {name: split for split, names in SPLITS.items() for name in names}
    split_of = {name: known.get(name.lower()) for name in builder.info.splits}
    taken = {split: name for name, split in split_of.items() if split}
    if "train" not in taken:
        raise UserError(
            "a data set with a split train",
            f"{builder.info.full_name} with {', '.join(split_of) or 'none'}",
            "Save the set as a folder or an .npz file.",
        )
    left_out = [(name, NOT_TAKEN) for name, split in split_of.items() if not split]
    for split in [] if masks else [split for split in taken if split != "train"]:
        first = next(_samples(builder, taken[split], image, encoded=True), None)
        if first is None or int(first[target]) < 0:  # withheld: -1 throughout
            left_out.append((taken.pop(split), UNLABELLED))
    return taken, left_out


def _class(label: Any, split: str) -> int:
    if int(label) < 0:
        raise UserError("a label for every sample", f"-1 in the split {split}", "Use another data set.")
    return int(label)


def _from_zero(masks: list[Array], lowest: int | None = None) -> None:
    """Subtract 1 from masks in place if the lowest value is 1 (the pets' 1, 2, 3); 255 stays."""
    if (min(int(mask.min()) for mask in masks) if lowest is None else lowest) == 1:
        for mask in masks:
            mask[mask != IGNORE] -= 1


def _write(folder: Path, name: str, image: bytes, target: Any) -> None:
    """Write SPLIT/images/NAME and SPLIT/masks/NAME, or SPLIT/CLASS/NAME; images as the bytes in TFDS."""
    inside = folder / ("images" if isinstance(target, np.ndarray) else f"{target}")
    inside.mkdir(parents=True, exist_ok=True)
    ending = ".png" if image.startswith(b"\x89PNG") else ".jpg"
    (inside / f"{name}{ending}").write_bytes(image)
    if isinstance(target, np.ndarray):
        (folder / "masks").mkdir(exist_ok=True)
        Image.fromarray(target).save(folder / "masks" / f"{name}.png", compress_level=1)


def _mask(mask: Any) -> Array:
    """Convert a mask [H, W, 1] or [H, W] to [H, W]."""
    array = np.asarray(mask)
    return array[:, :, 0] if array.ndim == 3 else array


def _samples(builder: Any, split: str, image: str, *, encoded: bool) -> Iterator[dict[str, Any]]:
    """Yield the samples of a split in their order on disk; images as bytes if `encoded`."""
    import tensorflow_datasets as tfds

    decoders = {image: tfds.decode.SkipDecoding()} if encoded else None
    # TFDS reads random-access formats as a data source, sequential formats as a dataset.
    if builder.info.file_format.value in ("array_record", "parquet"):
        yield from builder.as_data_source(split=split, decoders=decoders)
    else:
        reading = tfds.ReadConfig(interleave_cycle_length=1)
        yield from tfds.as_numpy(
            builder.as_dataset(split=split, decoders=decoders, shuffle_files=False, read_config=reading)
        )


if __name__ == "__main__":
    main()
