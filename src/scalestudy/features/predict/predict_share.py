"""One process's share of a prediction: images in, masks and lines of a table out."""

import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scalestudy.data.images import pictures
from scalestudy.engines.base import Inference
from scalestudy.features.predict.images import ImageItem
from scalestudy.features.predict.inputs import Array, Placing, Read, placing, read_for
from scalestudy.features.predict.job import ModelJob
from scalestudy.training.probabilities import are_logits, classes_of, probabilities
from scalestudy.util.errors import ScalestudyError
from scalestudy.util.files import write_atomically

PIXELS_AT_ONCE = 2**21
"""Most pixels of inputs in one call of the model."""
AT_ONCE = 16
"""Most images whose inputs are computed together."""
CHUNKS = 32
"""Least chunks that many images are shared out in."""


class _Ready(NamedTuple):
    place: int
    item: ImageItem
    read: Read
    placing: Placing
    inputs: Array


def chunks(count: int) -> list[range]:
    """Images that are computed together: the same for any number of processes, so that numbers are too."""
    size = max(1, min(AT_ONCE, count // CHUNKS))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def predict_share(model: Inference, job: ModelJob, rank: int, folder: Path) -> None:
    """Predict every `size`-th chunk, and append a line for each image to `part-RANK.jsonl` in `folder`.

    An image that cannot be read has a line that says why, and keeps no other from being predicted.
    """
    logits = _gives_logits(model, job)
    with open(folder / f"part-{rank}.jsonl", "w") as part:

        def tell(index: int, line: dict[str, Any]) -> None:
            part.write(json.dumps({"index": index, **line}) + "\n")
            part.flush()

        for chunk in chunks(len(job.items))[rank :: job.size]:
            ready = []
            for index in chunk:
                item = job.items[index]
                try:
                    ready.append(_read(index, item, job))
                except (ScalestudyError, OSError) as error:
                    why = error.received if isinstance(error, ScalestudyError) else str(error)
                    tell(index, {"shown": item.shown, "skipped": why})
            for image, values in _computed(model, job, ready, len(chunk), logits=logits):
                tell(image.place, _written(image, values, job))


def _gives_logits(model: Inference, job: ModelJob) -> bool:
    """Whether outputs are scores: asked with the same made-up inputs by every process."""
    inputs = np.random.default_rng(0).random((2, *job.record.input_shape), np.float32)
    inputs[0] = 0
    outputs = model.outputs(inputs, 1.0)
    probabilities(outputs, job.record, logits=True)  # refuses what is none of classes
    return are_logits(outputs)


def _read(index: int, item: ImageItem, job: ModelJob) -> _Ready:
    read = read_for(Path(item.file), job.record)
    way = placing((read.pixels.shape[0], read.pixels.shape[1]), job.record)
    # Resized in the file's own depth, with its rounding, as images are prepared; scaled afterwards.
    return _Ready(index, item, read, way, way.cut(read.pixels).astype(np.float32) * np.float32(read.scale))


def _computed(
    model: Inference, job: ModelJob, ready: Sequence[_Ready], most: int, *, logits: bool
) -> Iterator[tuple[_Ready, Array]]:
    """Each image with the probabilities of its inputs; batches are of one size, filled up with zeros."""
    if not ready:
        return
    inputs = np.concatenate([image.inputs for image in ready])
    height, width = job.record.size
    size = max(1, min(max(most, AT_ONCE if len(inputs) > most else 1), PIXELS_AT_ONCE // (height * width)))
    outputs = []
    for start in range(0, len(inputs), size):
        part = inputs[start : start + size]
        batch = np.zeros((size, *part.shape[1:]), part.dtype)
        batch[: len(part)] = part
        outputs.append(model.outputs(batch, 1.0)[: len(part)])
    values = probabilities(np.concatenate(outputs), job.record, logits=logits)
    ends = np.cumsum([len(image.inputs) for image in ready])
    yield from zip(ready, np.split(values, ends[:-1]), strict=True)


def _written(image: _Ready, values: Array, job: ModelJob) -> dict[str, Any]:
    """Write what there is of one image, and give its line of the table."""
    change = image.placing.change
    line: dict[str, Any] = {
        "shown": image.item.shown, "told": [*image.read.changes, *([change] if change else [])],
    }  # fmt: skip
    if job.record.kind == "classes":
        (one,) = values
        return line | {"class": int(np.argmax(one)), "probabilities": [float(value) for value in one]}
    whole = image.placing.joined(values)
    mask = classes_of(whole)
    out, name = Path(job.out), image.item.name
    _put(out / "masks" / f"{name}.png", pictures.mask_png(mask))
    if job.overlay:
        laid = pictures.overlay(pictures.shown(image.read.pixels), mask)
        _put(out / "overlays" / f"{name}.png", pictures.png(laid))
    if job.probabilities:
        stream = io.BytesIO()
        np.save(stream, whole)
        _put(out / "probabilities" / f"{name}.npy", stream.getvalue())
    counts = np.bincount(mask.ravel(), minlength=256)[: job.record.classes]
    known = max(1, int(counts.sum()))
    return line | {
        "mask": f"masks/{name}.png", "height": mask.shape[0], "width": mask.shape[1],
        "shares": [int(count) / known for count in counts],
    }  # fmt: skip


def _put(path: Path, content: bytes) -> None:
    os.makedirs(path.parent, exist_ok=True)
    write_atomically(path, content, durable=False)
