"""One process's share of a prediction: images in, masks and lines of a table out."""

import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from scalestudy.data.images import pictures
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.base import Inference
from scalestudy.features.predict.geometry import Array, Placing, placing
from scalestudy.features.predict.job import ItemRecord, Job
from scalestudy.features.predict.reading import Read, read_for
from scalestudy.training.probabilities import are_logits, classes_of, probabilities
from scalestudy.training.reading import in_channels, read_rows
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
    item: ItemRecord
    read: Read
    placing: Placing
    inputs: Array


def chunks(count: int) -> list[range]:
    """Images that are computed together: the same for any number of processes, so that numbers are too."""
    size = max(1, min(AT_ONCE, count // CHUNKS))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def predict_share(model: Inference, job: Job, rank: int, folder: Path) -> None:
    """Predict every `size`-th chunk, and append a line for each image to `part-RANK.jsonl` in `folder`.

    An image that cannot be read has a line that says why, and keeps no other from being predicted.
    """
    logits = _logits(model, job)
    prepared = Prepared.open(job.prepared) if job.prepared else None
    with open(folder / f"part-{rank}.jsonl", "w") as part:

        def tell(index: int, line: dict[str, Any]) -> None:
            part.write(json.dumps({"index": index, **line}) + "\n")
            part.flush()

        for chunk in chunks(len(job.items))[rank :: job.size]:
            ready = []
            for index in chunk:
                item = job.items[index]
                try:
                    ready.append(_read(index, item, job, prepared))
                except (ScalestudyError, OSError) as error:
                    why = error.received if isinstance(error, ScalestudyError) else str(error)
                    tell(index, {"shown": item.shown, "skipped": why})
            for each, values in _computed(model, job, ready, len(chunk), logits=logits):
                tell(each.place, _written(each, values, job))


def _logits(model: Inference, job: Job) -> bool:
    """Whether outputs are scores: asked with the same made-up inputs by every process."""
    made = np.random.default_rng(0).random((2, *job.record.input_shape), np.float32)
    made[0] = 0
    outputs = model.outputs(made, 1.0)
    probabilities(outputs, job.record, logits=True)  # refuses what is none of classes
    return are_logits(outputs)


def _read(index: int, item: ItemRecord, job: Job, prepared: Prepared | None) -> _Ready:
    if item.file is not None:
        read = read_for(Path(item.file), job.record)
    else:
        assert prepared is not None
        assert item.row is not None
        inputs, _ = read_rows(prepared, np.array([item.row]))
        read = Read(in_channels(inputs, job.record.input_shape[2])[0], prepared.scale or 1.0, ())
    way = placing((read.pixels.shape[0], read.pixels.shape[1]), job.record)
    # Resized in the file's own depth, with its rounding, as images are prepared; scaled afterwards.
    return _Ready(index, item, read, way, way.cut(read.pixels).astype(np.float32) * np.float32(read.scale))


def _computed(
    model: Inference, job: Job, ready: Sequence[_Ready], most: int, *, logits: bool
) -> Iterator[tuple[_Ready, Array]]:
    """Each image with the probabilities of its inputs; batches are of one size, filled up with zeros."""
    if not ready:
        return
    inputs = np.concatenate([each.inputs for each in ready])
    height, width = job.record.size
    size = max(1, min(max(most, AT_ONCE if len(inputs) > most else 1), PIXELS_AT_ONCE // (height * width)))
    found = []
    for start in range(0, len(inputs), size):
        part = inputs[start : start + size]
        batch = np.zeros((size, *part.shape[1:]), part.dtype)
        batch[: len(part)] = part
        outputs = model.outputs(batch, 1.0)[: len(part)]
        found.append(probabilities(outputs, job.record, logits=logits))
    values = np.concatenate(found)
    start = 0
    for each in ready:
        yield each, values[start : start + len(each.inputs)]
        start += len(each.inputs)


def _written(each: _Ready, values: Array, job: Job) -> dict[str, Any]:
    """Write what there is of one image, and give its line of the table."""
    told = [*each.read.told, *([each.placing.told] if each.placing.told else [])]
    line: dict[str, Any] = {"shown": each.item.shown, "told": told}
    if job.record.kind == "classes":
        (one,) = values
        return line | {"class": int(np.argmax(one)), "probabilities": [float(value) for value in one]}
    whole = each.placing.joined(values)
    mask = classes_of(whole)
    out, name = Path(job.out), each.item.name
    _put(out / "masks" / f"{name}.png", pictures.mask_png(mask))
    if job.overlay:
        laid = pictures.overlay(pictures.shown(each.read.pixels), mask)
        _put(out / "overlays" / f"{name}.png", pictures.png(laid))
    if job.probabilities == "npy":
        stream = io.BytesIO()
        np.save(stream, whole)
        _put(out / "probabilities" / f"{name}.npy", stream.getvalue())
    elif job.probabilities == "tiff":
        _put(out / "probabilities" / f"{name}.tif", _tiff(whole))
    counts = np.bincount(mask.ravel(), minlength=256)[: job.record.classes]
    known = max(1, int(counts.sum()))
    return line | {
        "mask": f"masks/{name}.png", "height": mask.shape[0], "width": mask.shape[1],
        "shares": [int(count) / known for count in counts],
    }  # fmt: skip


def _tiff(values: Array) -> bytes:
    """A page of 32-bit floating-point numbers for each class."""
    pages = [
        Image.fromarray(np.ascontiguousarray(values[:, :, channel])) for channel in range(values.shape[2])
    ]
    stream = io.BytesIO()
    pages[0].save(stream, "TIFF", save_all=True, append_images=pages[1:])
    return stream.getvalue()


def _put(path: Path, content: bytes) -> None:
    os.makedirs(path.parent, exist_ok=True)
    write_atomically(path, content, durable=False)
