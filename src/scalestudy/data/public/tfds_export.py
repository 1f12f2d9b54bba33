"""Writes a set of TensorFlow Datasets out: `python -m NAME kind|export SOURCE [FOLDER]`.

The one process that imports TFDS. Lines of JSON tell how far it is, and at last what there is.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scalestudy.data.layout import SPLITS
from scalestudy.data.public.tfds_features import Asked, asked_of, chosen
from scalestudy.data.public.tfds_write import Arrays, Files, shift_masks
from scalestudy.errors import ScalestudyError, UserError

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
        asked = asked_of(text.partition(":")[2])
        builder = _builder(asked)
        image, target, kind = chosen(_kinds(builder), asked.feature, text)
        if what == "kind":
            answer: dict[str, Any] = {"kind": kind}
        else:
            _prepare(builder, asked)
            answer = _export(builder, image, target, Path(rest[0]), out)
    except ScalestudyError as error:
        answer = {"expected": error.expected, "received": error.received, "action": error.action}
    print(json.dumps(answer), file=out)


def _builder(asked: Asked) -> Any:
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
        return tfds.builder_from_directory(asked.name) if asked.folder else tfds.builder(asked.name)
    except (tfds.core.DatasetNotFoundError, ValueError, AssertionError) as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            "a set that TensorFlow Datasets knows, as NAME or NAME/CONFIG:VERSION",
            f"{asked.text}: {reason}",
            "Correct the name, the configuration or the version (`tfds.list_builders()` lists names).",
        ) from error


def _prepare(builder: Any, asked: Asked) -> None:
    """Have TFDS download and prepare the set, where no local copy is prepared."""
    try:
        builder.download_and_prepare()
    except ScalestudyError:
        raise
    except Exception as error:  # TFDS and its downloaders raise many kinds
        lines = [line for line in str(error).splitlines() if line.strip()]
        reason = f"{type(error).__name__}: {lines[0][:300] if lines else ''}"
        raise UserError(
            f"{asked.name} prepared by TensorFlow Datasets in {builder.data_path}",
            reason,
            "Where there is no network, copy its folder here and name it: tfds:/FOLDER/NAME/VERSION (or set "
            "TFDS_DATA_DIR). Sets that must be fetched by hand say so on TFDS's page.",
        ) from error


def _kinds(builder: Any) -> dict[str, str]:
    features = builder.info.features
    return {name: type(feature).__name__ for name, feature in getattr(features, "items", dict)()}


def _export(builder: Any, image: str, target: str, folder: Path, out: Any) -> dict[str, Any]:
    names = {own: split for split, others in SPLITS.items() for own in others}
    found = {name: names.get(name.lower()) for name in builder.info.splits}
    taken = {split: name for name, split in found.items() if split}
    if "train" not in taken:
        raise UserError(
            "a set with a split train",
            f"{builder.info.full_name} with {', '.join(found) or 'none'}",
            "Write the set out as a folder or an .npz file.",
        )
    left_out = [(name, NOT_TAKEN) for name, split in found.items() if not split]
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
