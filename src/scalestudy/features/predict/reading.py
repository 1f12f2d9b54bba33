"""Reading one image for a model: in its channels, as numbers from 0 to 1. What is done to it is told."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scalestudy.data.images.decode import read_pixels
from scalestudy.data.images.form import Form
from scalestudy.study.model_record import ModelRecord
from scalestudy.training.reading import in_channels
from scalestudy.util.errors import UserError

SCALES = {"uint8": 1 / 255, "uint16": 1 / 65535}
"""What takes whole numbers of an image file into [0, 1]."""


class Read(NamedTuple):
    """An image.

    Attributes:
        pixels: As its file has them, shape [H, W, C].
        scale: Multiplies them into what models see.
        told: What was done that is worth telling.
    """

    pixels: npt.NDArray[Any]
    scale: float
    told: tuple[str, ...]


def read_for(path: Path, record: ModelRecord) -> Read:
    """Read an image file as the images that a model was trained on.

    Raises:
        UserError: If it is damaged, or its numbers mean something else than those of the training.
    """
    stack, value_range = record.data.get("stack"), record.data.get("value_range")
    channels = record.input_shape[2]
    pages = read_pixels(path, stack).values
    if len(pages) > 1:
        raise UserError(
            "one image in a file", f"{path} with {len(pages)}", "Save each of its pages to a file of its own."
        )
    found = pages[0].shape[2]
    if found != channels and {found, channels} != {1, 3}:
        raise UserError(
            f"images of {channels} channels, as in training", f"{path} with {found}", "Convert the image."
        )
    told = ["colour, read as grey"] * (found > channels) + ["grey, read as colour"] * (found < channels)
    pixels = in_channels(pages, channels)[0]
    if value_range and record.dtype == "float32":
        form = Form(channels, np.dtype(np.float32), tuple(value_range))
        return Read(form.of(pixels, str(path)), record.scale, tuple(told))
    if pixels.dtype.name != record.dtype and pixels.dtype.kind in "iu" and record.dtype in SCALES:
        told.append(f"of {8 * pixels.dtype.itemsize} bits, scaled to 0..1 as those of the training")
    return Read(pixels, scale_of(pixels.dtype, record, str(path)), tuple(told))


def scale_of(dtype: np.dtype[Any], record: ModelRecord, name: str) -> float:
    """What multiplies numbers of an image file into those that a model was trained on.

    Raises:
        UserError: If nobody can tell.
    """
    if dtype.name == record.dtype:
        return record.scale
    scale, trained = SCALES.get(dtype.name), SCALES.get(record.dtype)
    if scale is None or trained is None or not np.isclose(record.scale, trained):
        raise UserError(
            f"numbers as in training ({record.dtype}, multiplied by {record.scale:.6g})",
            f"{name} of {dtype.name}",
            f"Store it as {record.dtype} with values of the same range.",
        )
    return scale
