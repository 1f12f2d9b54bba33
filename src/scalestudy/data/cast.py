"""From the type that numbers come in to the type that they are stored in, without loss of their meaning."""

from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.errors import UserError


def stored_as(array: npt.NDArray[Any], dtype: np.dtype[Any], name: str) -> npt.NDArray[Any]:
    """The numbers as `dtype`: whole numbers exactly, floating-point ones rounded to its precision.

    Args:
        array: Numbers of any shape.
        dtype: A type of integers or floating-point numbers.
        name: What they are, for messages.

    Raises:
        UserError: there are other things than real numbers, NaN or infinity before the cast or after it, or
            integers that the type cannot hold.
    """
    if array.dtype.kind not in "biuf":
        raise UserError("real numbers", f"{name} of type {array.dtype}", f"Store it as {dtype}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UserError("finite numbers", f"{name} with NaN or infinity", "Repair or remove it.")
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(dtype)
    if dtype.kind == "f" and not np.isfinite(cast).all():
        raise UserError(
            f"numbers that {dtype} can hold (up to {np.finfo(dtype).max:.3g})",
            f"{name}, with values up to {np.abs(array).max():.3g}",
            "Scale the data, for example to 0..1, before they are saved.",
        )
    if dtype.kind != "f" and not (cast == array).all():
        raise UserError(
            f"whole numbers that {dtype} can hold ({np.iinfo(dtype).min}..{np.iinfo(dtype).max})",
            f"{name}, with values {array.min()}..{array.max()}",
            "Store whole numbers of that range.",
        )
    return cast


def as_stored(inputs: npt.NDArray[Any], scale: float, dtype: str, own_scale: float) -> npt.NDArray[Any]:
    """Numbers that `scale` takes into [0, 1] as those that `own_scale` takes there, in the type `dtype`."""
    if inputs.dtype == np.dtype(dtype) and scale == own_scale:
        return inputs
    values = inputs.astype(np.float64) * (scale / own_scale)
    if np.dtype(dtype).kind in "iu":
        values = np.rint(values).clip(0, np.iinfo(dtype).max)
    return values.astype(dtype)
