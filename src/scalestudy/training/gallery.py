"""A gallery of the best, median and worst validation samples, with truth and prediction."""

import math
import traceback
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from scalestudy.data.images import pictures
from scalestudy.data.loader import read_rows, reader_of
from scalestudy.data.samples import IGNORE, Indices
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.interface import Inference, Trainer
from scalestudy.store.model_record import GalleryRecord, GallerySample, ModelRecord
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

Array = npt.NDArray[Any]
TOLERANCE = 1e-2
"""Allowed deviation of a sum of probabilities from 1, for half precision."""
SIDE = 256
"""Maximum length of a picture's longer side in pixels."""
PIXELS_AT_ONCE = 2**21
"""Maximum number of input pixels evaluated in one batch."""
SAMPLES = 48
"""Maximum number of validation samples evaluated; rank 0 does this while the other ranks wait."""
PIXELS = 2**22
"""Maximum number of pixels of these samples together."""


def are_logits(outputs: Array) -> bool:
    """Return whether outputs cannot be probabilities: outside [0, 1], or not summing to 1 over classes."""
    if outputs.min() < -TOLERANCE or outputs.max() > 1 + TOLERANCE:
        return True
    # A single channel is that of the second class alone.
    if outputs.shape[-1] == 1:
        return False
    deviation = np.abs(outputs.sum(-1) - 1)
    return bool(deviation.max() > TOLERANCE)


def probabilities(outputs: Array, record: ModelRecord, *, logits: bool) -> Array:
    """Convert a model's outputs to class probabilities, float32 [B, classes] or [B, H, W, classes].

    A single channel, or none, is the second of two classes. `logits` are scores before a softmax or sigmoid.

    Raises:
        UserError: If the shape of the outputs does not match the classes.
    """
    inner, place = 1, "each image"
    if record.kind == "masks":
        inner, place = 3, "each pixel"
    accepted: tuple[int, ...] = (record.classes,)
    if record.classes == 2:
        accepted = (1, 2)
    values = np.asarray(outputs, np.float32)
    if values.ndim == inner and record.classes == 2:
        values = values[..., None]
    channels = 0
    if values.ndim == inner + 1:
        channels = values.shape[-1]
    if channels not in accepted:
        raise UserError(
            f"a model that gives the probabilities of {record.classes} classes for {place}",
            f"outputs of shape {list(outputs.shape)}",
            "Use the exported model in your own program, which knows what its outputs mean.",
        )
    if channels == 1:
        second: Array = values
        if logits:
            second = 1 / (1 + np.exp(-values))
        return np.concatenate([1 - second, second], axis=-1)
    if logits:
        # Less the largest, so that no power overflows.
        powers = np.exp(values - values.max(-1, keepdims=True))
        values = powers / powers.sum(-1, keepdims=True)
    return values


def classes_of(values: Array) -> npt.NDArray[np.uint8]:
    """Return the most probable class (of two, the second from one half on), or 255 where one is NaN."""
    if values.shape[-1] == 2:
        best = (values[..., 1] >= 0.5).astype(np.uint8)
    else:
        best = np.argmax(np.nan_to_num(values, nan=-1), axis=-1).astype(np.uint8)
    unknown = np.isnan(values).any(-1)
    return np.where(unknown, np.uint8(IGNORE), best)


class Chosen(NamedTuple):
    """A selected sample: its index among the evaluated samples, and the reasons for selecting it."""

    place: int
    roles: tuple[str, ...]


def choose(losses: NDArray[np.float64], count: int) -> list[Chosen]:
    """Select the best, median and worst samples by `losses` (shape [M]), `count` of each; lowest loss first.

    Losses that are not finite count as worst.
    """
    finite = np.nan_to_num(losses, nan=math.inf, posinf=math.inf)
    order = np.argsort(finite, kind="stable").tolist()
    middle = max(0, (len(order) - count) // 2)
    sorts = {
        "best": order[:count],
        "median": order[middle : middle + count],
        "worst": order[::-1][:count],
    }
    chosen = []
    for place in order:
        # With few samples, one may be the best and the median.
        roles = [f"{name} by loss" for name in sorts if place in sorts[name]]
        if roles:
            chosen.append(Chosen(place, tuple(roles)))
    return chosen


def gallery_of(
    model: Inference,
    record: ModelRecord,
    prepared: Prepared,
    rows: Indices,
    *,
    count: int,
    of: int,
) -> GalleryRecord:
    """Evaluate `rows` (shape [M], from a validation set of `of` rows) and show `count` of each kind."""
    scale = prepared.scale or 1.0
    parts = [model.losses(*part, scale) for part in _parts(prepared, rows)]
    losses = np.concatenate(parts)
    samples = []
    for chosen in choose(losses, count):
        row = rows[chosen.place : chosen.place + 1]
        inputs, targets = read_rows(prepared, row)
        outputs = model.outputs(inputs, scale)
        values = probabilities(outputs, record, logits=are_logits(outputs))
        shown = GallerySample(
            name=prepared.names[int(row[0])],
            roles=list(chosen.roles),
            loss=float(losses[chosen.place]),
        )
        pictured = _with_pictures(
            shown,
            inputs[0],
            targets[0],
            values[0],
            prepared.class_names,
        )
        samples.append(pictured)
    return GalleryRecord(
        kind=prepared.kind,
        considered=len(rows),
        of=of,
        weights=record.weights,
        class_names=list(prepared.class_names),
        samples=samples,
    )


def _with_pictures(
    sample: GallerySample,
    image: Any,
    target: Any,
    values: Any,
    names: Sequence[str],
) -> GallerySample:
    seen = pictures.to_rgb(image)
    if np.ndim(target) == 0:
        best = int(np.argmax(values))
        return sample.model_copy(
            update={
                "truth": names[int(target)],
                "predicted": names[best],
                "probability": float(values[best]),
                "pictures": {"image": _picture(seen)},
            }
        )
    predicted = classes_of(values)
    # Ignored pixels are not part of the image.
    predicted = np.where(target == IGNORE, np.uint8(0), predicted)
    shown = {
        "image": seen,
        "truth": pictures.overlay(seen, target),
        "prediction": pictures.overlay(seen, predicted),
        "difference": pictures.difference(seen, target, predicted),
    }
    encoded = {name: _picture(rgb) for name, rgb in shown.items()}
    return sample.model_copy(update={"pictures": encoded})


def _picture(rgb: Any) -> str:
    file = pictures.png(pictures.within(rgb, SIDE))
    return b64encode(file).decode()


def _parts(prepared: Prepared, rows: Indices) -> Iterator[tuple[Any, Any]]:
    """Yield inputs and targets of rows in small batches."""
    height, width, _ = prepared.input_shape
    size = max(1, min(64, PIXELS_AT_ONCE // (height * width)))
    reader = reader_of(prepared)
    for start in range(0, len(rows), size):
        yield read_rows(prepared, rows[start : start + size], reader)


def save_gallery(
    folder: RunFolder,
    trainer: Trainer,
    prepared: Prepared,
    rows: Indices,
) -> None:
    """Write `gallery.json` for a subset of `rows` (the validation set, shape [M]), evenly spaced in it.

    An error is written to the log and does not fail the run.
    """
    record = folder.model_record()
    if record is None or not record.train.get("gallery", True):
        return
    if prepared.kind not in ("masks", "classes"):
        return
    try:
        pixels = int(np.prod(prepared.input_shape[:2]))
        made = gallery_of(
            trainer.file.inference(),
            record,
            prepared,
            some(rows, pixels),
            count=1,
            of=len(rows),
        )
        folder.refuse_other_job()
        write_atomically(folder.gallery, made.model_dump_json() + "\n")
    except Exception as error:
        # An error of the user's model or of the disk must not fail the run.
        traceback.print_exc()
        print(f"scalestudy: this run has no gallery: {error}", flush=True)


def some(rows: Indices, pixels: int) -> Indices:
    """Return evenly spaced elements of `rows`, within the limits for images of `pixels` pixels."""
    most = min(len(rows), SAMPLES, max(6, PIXELS // pixels))
    places = np.linspace(0, len(rows) - 1, most).round()
    return rows[places.astype(np.int64)]
