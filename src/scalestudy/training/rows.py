"""Rows of a prepared data set, read into memory of their own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.data.columns import map_columns
from scalestudy.data.loading.order import Indices
from scalestudy.data.loading.reader import Reader, reader_of
from scalestudy.data.store.prepared import Prepared


def read_rows(prepared: Prepared, rows: Indices, reader: Reader | None = None) -> tuple[Any, Any]:
    """Inputs and targets of rows, each of shape [B, ...] (or several by name), without augmentation.

    Args:
        prepared: The set.
        rows: Row numbers, shape [B].
        reader: What reads it, where it is asked often.
    """
    reader = reader or reader_of(prepared)

    def empty(form: tuple[tuple[int, ...], Any]) -> NDArray[Any]:
        return np.empty((len(rows), *form[0]), form[1])

    inputs, targets = (map_columns(empty, forms) for forms in reader.forms(rows))
    reader.read(np.asarray(rows, np.int64), None, inputs, targets)
    return inputs, targets


def in_channels(inputs: NDArray[Any], channels: int) -> NDArray[Any]:
    """Inputs [B, H, W, C] in as many channels as a model takes: grey repeated, colours as their luma.

    Luma is that of ITU-R BT.601, as where images are read.
    """
    if inputs.shape[-1] == channels:
        return inputs
    if channels == 1:
        luma = inputs[..., :3] @ np.array([0.299, 0.587, 0.114])
        grey = luma if inputs.dtype.kind == "f" else np.rint(luma)
        return np.ascontiguousarray(grey.astype(inputs.dtype)[..., None])
    return np.ascontiguousarray(np.broadcast_to(inputs[..., :1], (*inputs.shape[:-1], channels)))
