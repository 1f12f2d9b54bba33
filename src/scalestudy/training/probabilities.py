"""Convert a model's outputs to class probabilities. Pure functions of arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.samples import IGNORE
from scalestudy.store.model_record import ModelRecord
from scalestudy.util.errors import UserError

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
