"""`python -m scalestudy.features.model.model_worker JOB`: a process that uses a model.

JOB is the file of a `model_job.ModelJob`. It prints its progress and its answer (`util.child_process`).
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from scalestudy.cluster.placement import Placement
from scalestudy.config.point import Point
from scalestudy.data.images import pictures
from scalestudy.data.loader import read_rows, reader_of
from scalestudy.data.samples import Slice
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import join
from scalestudy.engines.interface import Engine, Inference, Trainer, engine_of
from scalestudy.features.model.image_inputs import (
    Array,
    ImageItem,
    Placing,
    Read,
    placing,
    read_for,
)
from scalestudy.features.model.model_job import EXPECTED, REMEDY, ModelJob
from scalestudy.hardware import cores
from scalestudy.plugins.engines import engine_traits
from scalestudy.plugins.strategies import references
from scalestudy.store.model_record import ModelRecord
from scalestudy.training.gallery import (
    are_logits,
    classes_of,
    gallery_of,
    probabilities,
)
from scalestudy.training.reading import in_channels
from scalestudy.util.child_process import Say, answer_and_exit
from scalestudy.util.errors import RunError, ScalestudyError, explain
from scalestudy.util.files import make_inside, write_atomically
from scalestudy.util.unused_packages import without_unused

EVALUATED_PIXELS, PREDICTED_PIXELS = 2**20, 2**21
"""Maximum number of input pixels in a call of the model."""
IMAGES_AT_ONCE = 16
"""Maximum number of images that are read before they are predicted."""
PAGE_SAMPLES = 3
"""Best, median and worst samples on a page of samples, each."""
_ON_CPU = {"tf32": "float32"}
"""Precisions of GPUs, and their replacements on CPUs."""


def main(file: str) -> NoReturn:
    """Do the job in this file, and answer."""

    def work(say: Say) -> dict[str, Any]:
        return _explain(Path(file), say)

    answer_and_exit(work, EXPECTED, lambda _: REMEDY)


def _explain(file: Path, say: Say) -> dict[str, Any]:
    try:
        job = ModelJob.model_validate_json(file.read_bytes())
        return _done(job, say)
    except Exception as error:
        raise explain(error) or RunError(EXPECTED, repr(error), REMEDY) from error


def _done(job: ModelJob, say: Say) -> dict[str, Any]:
    with without_unused(engine_traits(job.record.engine).unused):
        engine = engine_of(job.record.engine)
        engine.set_up(
            _point(job.record, job.device),
            threads=len(cores.granted()),
            device=job.device,
        )
    if job.action == "export":
        engine.export(job.model, job.record, job.out, job.form)
        return {}
    if job.action == "evaluate":
        return evaluate_set(engine, job, say)
    if job.action == "gallery":
        rows = np.array(job.rows, np.int64)
        prepared = Prepared.open(job.prepared)
        model = _trainer(engine, job, prepared).file.inference()
        gallery = gallery_of(
            model,
            job.record,
            prepared,
            rows,
            count=PAGE_SAMPLES,
            of=len(rows),
        )
        return gallery.model_dump(mode="json")
    model = engine.inference(job.model, job.record)
    return {"lines": predict_images(model, job, say)}


def evaluate_set(
    engine: Engine,
    job: ModelJob,
    say: Say = lambda message: None,
) -> dict[str, Any]:
    """Return results and the number of samples."""
    prepared = Prepared.open(job.prepared)
    reader = reader_of(prepared)
    trainer = _trainer(engine, job, prepared)
    rows = np.array(job.rows, np.int64)
    pixels = int(np.prod(prepared.input_shape[:2]))
    size = max(1, min(64, EVALUATED_PIXELS // pixels))
    sums: list[Any] = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        inputs, targets = read_rows(prepared, part, reader)
        inputs = in_channels(inputs, job.record.input_shape[2])
        one = Slice(inputs[None], targets[None], 0, len(part), len(part))
        more = trainer.evaluate((one,))
        # Sums and no means of batches, so that each sample counts once, also in a smaller last batch.
        if sums:
            sums = [a + b for a, b in zip(sums, more, strict=True)]
        else:
            sums = more
        say({"done": start + len(part), "all": len(rows)})
    total = trainer.arrays(sums)
    return {"results": trainer.results(total), "samples": len(rows)}


def _trainer(engine: Engine, job: ModelJob, prepared: Prepared) -> Trainer:
    """Build the model's task for a data set, and restore the model's weights."""
    record = job.record
    # The task must see the channels of the model, not those of the data set.
    shape = (*prepared.input_shape[:2], record.input_shape[2])
    seen = prepared.model_copy(update={"input_shape": shape})
    alone = Placement(0, 1, 0, 1, 0, ("localhost",), "alone")
    strategy = references(record.engine)[0]
    joined = join(strategy, alone, workers=1, device=job.device)
    # The rate is of no effect, since no step is taken.
    trainer = engine.trainer(_point(record, job.device), seen, np.ones(1), joined)
    trainer.file.restore(job.model)
    return trainer


def _point(record: ModelRecord, device: str) -> Point:
    """Return a one-worker point with the precision that the model was trained with."""
    # Determinism costs a GPU from 6 % to several times its speed.
    train = record.rebuilt.model_dump() | {"deterministic": device == "cpu"}
    if device == "cpu":
        train["precision"] = _ON_CPU.get(train["precision"], train["precision"])
    alone = references(record.engine)[0]
    # The images to use are those of the job, whatever the model was trained on.
    data = dict(record.data)
    data.pop("source", None)
    point = Point.model_validate(
        {
            "name": "use",
            "study": "use",
            "task": record.task,
            "engine": record.engine,
            "strategy": alone,
            "workers": 1,
            "seed": 0,
            "data": {"source": "none", **data},
            "train": train,
            "terms": {"implementation": alone, "launch": {"device": device}},
        }
    )
    return point.with_files("", "", record.class_weights)


class _Ready(NamedTuple):
    place: int
    item: ImageItem
    read: Read
    placing: Placing
    inputs: Array


def predict_images(
    model: Inference,
    job: ModelJob,
    say: Say = lambda message: None,
) -> list[dict[str, Any]]:
    """Predict images, and return a line for each, in their order.

    The line of an image that cannot be read gives the reason; the other images are still predicted.
    """
    logits = _gives_logits(model, job)
    lines: dict[int, dict[str, Any]] = {}
    for start in range(0, len(job.items), IMAGES_AT_ONCE):
        ready = []
        items = job.items[start : start + IMAGES_AT_ONCE]
        for index, item in enumerate(items, start):
            try:
                ready.append(_read(index, item, job))
            except ScalestudyError as error:
                lines[index] = {"shown": item.shown, "skipped": error.received}
            except OSError as error:
                lines[index] = {"shown": item.shown, "skipped": str(error)}
        for image, values in _compute(model, job, ready, logits=logits):
            lines[image.place] = _write(image, values, job)
            say({"done": len(lines), "all": len(job.items)})
    return [lines[index] for index in range(len(job.items))]


def _gives_logits(model: Inference, job: ModelJob) -> bool:
    """Return whether outputs are logits, by synthetic inputs."""
    inputs = np.random.default_rng(0).random((2, *job.record.input_shape), np.float32)
    inputs[0] = 0
    outputs = model.outputs(inputs, 1.0)
    # Raises if the outputs are not those of classes.
    probabilities(outputs, job.record, logits=True)
    return are_logits(outputs)


def _read(index: int, item: ImageItem, job: ModelJob) -> _Ready:
    read = read_for(Path(item.file), job.record)
    way = placing((read.pixels.shape[0], read.pixels.shape[1]), job.record)
    # Resize in the file's bit depth, with its rounding, as when preparing images; then scale.
    inputs = way.cut(read.pixels).astype(np.float32) * np.float32(read.scale)
    return _Ready(index, item, read, way, inputs)


def _compute(
    model: Inference,
    job: ModelJob,
    ready: Sequence[_Ready],
    *,
    logits: bool,
) -> Iterator[tuple[_Ready, Array]]:
    """Yield each image with the probabilities of its inputs. All batches have one size, padded with zeros."""
    if not ready:
        return
    inputs = np.concatenate([image.inputs for image in ready])
    height, width = job.record.size
    most = IMAGES_AT_ONCE
    # One input an image, none of which is a tile: fewer images need no larger batch.
    if len(inputs) == len(ready):
        most = min(len(job.items), IMAGES_AT_ONCE)
    size = max(1, min(most, PREDICTED_PIXELS // (height * width)))
    outputs = []
    for start in range(0, len(inputs), size):
        part = inputs[start : start + size]
        # Of one size, since a framework may compile the model again for another.
        batch = np.zeros((size, *part.shape[1:]), part.dtype)
        batch[: len(part)] = part
        outputs.append(model.outputs(batch, 1.0)[: len(part)])
    values = probabilities(np.concatenate(outputs), job.record, logits=logits)
    ends = np.cumsum([len(image.inputs) for image in ready])
    by_image = np.split(values, ends[:-1])
    yield from zip(ready, by_image, strict=True)


def _write(image: _Ready, values: Array, job: ModelJob) -> dict[str, Any]:
    """Write the files of one image, and return its line of the table."""
    line: dict[str, Any] = {"shown": image.item.shown}
    if job.record.kind == "classes":
        (one,) = values
        return line | {
            "class": int(np.argmax(one)),
            "probabilities": list(map(float, one)),
        }
    whole = image.placing.joined(values)
    mask = classes_of(whole)
    out = Path(job.out)
    name = image.item.name
    _put(out, f"masks/{name}.png", pictures.mask_png(mask))
    if job.overlay:
        laid = pictures.overlay(pictures.to_rgb(image.read.pixels), mask)
        _put(out, f"overlays/{name}.png", pictures.png(laid))
    # Of the pixels that the model has seen: those cropped by `fit = "crop"` are of class 255.
    counts = np.bincount(mask.ravel(), minlength=256)[: job.record.classes]
    known = max(1, int(counts.sum()))
    shares = [int(count) / known for count in counts]
    return line | {
        "mask": f"masks/{name}.png",
        "height": mask.shape[0],
        "width": mask.shape[1],
        "shares": shares,
    }


def _put(out: Path, name: str, content: bytes) -> None:
    """Write a file of the output folder, with the folders in its name."""
    out.mkdir(parents=True, exist_ok=True)
    # One by one, since `mkdir(parents=True)` would follow a link that lies in the output folder.
    for folder in reversed(Path(name).parents[:-1]):
        make_inside(out / folder)
    # Predictions can be computed again, so that no file needs to be forced to the disk.
    write_atomically(out / name, content, durable=False)


if __name__ == "__main__":
    main(sys.argv[1])
