"""A gallery of the best, median and worst validation samples, with truth and prediction."""

import math
import traceback
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from scalestudy.config.objectives import Better
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


def are_logits(outputs: Array) -> bool:
    """Return whether outputs cannot be probabilities: outside [0, 1], or not summing to 1 over classes."""
    if outputs.min() < -TOLERANCE or outputs.max() > 1 + TOLERANCE:
        return True
    return outputs.shape[-1] > 1 and bool(np.abs(outputs.sum(-1) - 1).max() > TOLERANCE)


def probabilities(outputs: Array, record: ModelRecord, *, logits: bool) -> Array:
    """Convert a model's outputs to class probabilities, float32 [B, classes] or [B, H, W, classes].

    A single channel, or none, is the second of two classes. `logits` are scores before a softmax or sigmoid.

    Raises:
        UserError: If the shape of the outputs does not match the classes.
    """
    inner = 3 if record.kind == "masks" else 1
    values = np.asarray(outputs, np.float32)
    if values.ndim == inner and record.classes == 2:
        values = values[..., None]
    channels = values.shape[-1] if values.ndim == inner + 1 else 0
    if channels not in ((1, 2) if record.classes == 2 else (record.classes,)):
        place = "each pixel" if record.kind == "masks" else "each image"
        raise UserError(
            f"a model that gives the probabilities of {record.classes} classes for {place}",
            f"outputs of shape {list(outputs.shape)}",
            "Use the exported model in your own program, which knows what its outputs mean.",
        )
    if channels == 1:
        second = 1 / (1 + np.exp(-values)) if logits else values
        return np.concatenate([1 - second, second], axis=-1)
    if logits:
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


SIDE = 256
"""Maximum length of a picture's longer side in pixels."""
PIXELS_AT_ONCE = 2**21
"""Maximum number of input pixels evaluated in one batch."""


class Chosen(NamedTuple):
    """A selected sample: its index among the evaluated samples, and the reasons for selecting it."""

    place: int
    roles: tuple[str, ...]


def choose(
    losses: NDArray[np.float64],
    qualities: NDArray[np.float64],
    metric: str,
    better: Better | None,
    count: int,
) -> list[Chosen]:
    """Select the best, median and worst samples, `count` of each, by loss and by quality; lowest loss first.

    `losses` and `qualities` have shape [M]. Quality is ignored if all values are NaN or `better` is None.
    Samples of equal quality are ordered by their loss. Values that are not finite count as worst.
    """
    worst_first = np.nan_to_num(losses, nan=math.inf, posinf=math.inf)
    orders = {"loss": np.argsort(worst_first, kind="stable")}
    if better is not None and np.isfinite(qualities).any():
        gains = np.nan_to_num(qualities if better == "higher" else -qualities, nan=-math.inf)
        orders[metric] = np.lexsort((worst_first, -gains))
    roles: dict[int, list[str]] = {}
    for by, order in orders.items():
        middle = max(0, (len(order) - count) // 2)
        sorts = (
            ("best", order[:count]),
            ("median", order[middle : middle + count]),
            ("worst", order[::-1][:count]),
        )
        for sort, places in sorts:
            for place in places.tolist():
                roles.setdefault(place, []).append(f"{sort} by {by}")
    first = sorted(roles, key=lambda place: (worst_first[place], place))
    return [Chosen(place, tuple(roles[place])) for place in first]


def gallery_of(
    model: Inference,
    record: ModelRecord,
    prepared: Prepared,
    rows: Indices,
    *,
    count: int,
    better: Better | None,
    of: int,
) -> GalleryRecord:
    """Evaluate `rows` (shape [M], from a validation set of `of` rows) and show `count` of each kind."""
    metric = record.metric or "quality"
    losses, qualities = [], []
    for inputs, targets, _ in _parts(prepared, rows):
        judged = model.judged(inputs, targets, prepared.scale or 1.0)
        losses.append(judged.losses)
        qualities.append(judged.qualities)
    loss, quality = np.concatenate(losses), np.concatenate(qualities)
    samples = []
    for chosen in choose(loss, quality, metric, better, count):
        row = rows[chosen.place : chosen.place + 1]
        inputs, targets = read_rows(prepared, row)
        outputs = model.outputs(inputs, prepared.scale or 1.0)
        values = probabilities(outputs, record, logits=are_logits(outputs))[0]
        value = float(quality[chosen.place])
        shown = GallerySample(
            name=prepared.names[int(row[0])],
            roles=list(chosen.roles),
            loss=float(loss[chosen.place]),
            quality=value if math.isfinite(value) else None,
        )
        samples.append(_with_pictures(shown, inputs[0], targets[0], values, prepared.class_names))
    return GalleryRecord(
        kind=prepared.kind,
        metric=metric,
        better=better,
        considered=len(rows),
        of=of,
        weights=record.weights,
        class_names=list(prepared.class_names),
        samples=samples,
    )


def _with_pictures(
    sample: GallerySample, image: Any, target: Any, values: Any, names: Sequence[str]
) -> GallerySample:
    seen = pictures.shown(image)
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
    return sample.model_copy(update={"pictures": {name: _picture(rgb) for name, rgb in shown.items()}})


def _picture(rgb: Any) -> str:
    return b64encode(pictures.png(pictures.within(rgb, SIDE))).decode()


def _parts(prepared: Prepared, rows: Indices) -> Iterator[tuple[Any, Any, Indices]]:
    """Yield inputs and targets of rows in small batches, with their row numbers."""
    height, width, _ = prepared.input_shape
    size = max(1, min(64, PIXELS_AT_ONCE // (height * width)))
    reader = reader_of(prepared)
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        yield *read_rows(prepared, part, reader), part


SAMPLES = 48
"""Maximum number of validation samples evaluated; rank 0 does this while the other ranks wait."""
PIXELS = 2**22
"""Maximum number of pixels of these samples together."""
BYTES = 2_000_000
"""Maximum file size in bytes; the last samples are dropped to stay below it."""


def leave(folder: RunFolder, trainer: Trainer, prepared: Prepared, rows: Indices) -> None:
    """Write `gallery.json` for a subset of `rows` (the validation set, shape [M]), evenly spaced in it.

    An error is written to the log and does not fail the run.
    """
    record = folder.model_record()
    if record is None or not record.train.get("gallery", True) or prepared.kind not in ("masks", "classes"):
        return
    try:
        made = gallery_of(
            trainer.inference(),
            record,
            prepared,
            some(rows, int(np.prod(prepared.input_shape[:2]))),
            count=1,
            better=trainer.sense.better,
            of=len(rows),
        )
        text = made.model_dump_json()
        while len(text) > BYTES and made.samples:
            made = made.model_copy(update={"samples": made.samples[:-1]})
            text = made.model_dump_json()
        folder.refuse_other_job()
        write_atomically(folder.gallery, text + "\n")
    except Exception as error:  # an error of the user's model or of the disk must not fail the run
        traceback.print_exc()
        print(f"scalestudy: this run has no gallery: {error}", flush=True)


def some(rows: Indices, pixels: int) -> Indices:
    """Return evenly spaced elements of `rows`, within the limits for images of `pixels` pixels."""
    most = min(len(rows), SAMPLES, max(6, PIXELS // pixels))
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]
