"""Class weights of the loss, from the frequencies in the training set."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from scalestudy.data.loading.slices import Indices
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError

AT_ONCE = 2**26
"""Maximum number of labels to count in one call."""


def class_counts(prepared: Prepared, rows: Indices) -> npt.NDArray[np.int64]:
    """Count the labels of each class in `rows`, without ignored ones; shape [classes]."""
    counts = np.zeros(prepared.classes, np.int64)
    for part in _parts(prepared, rows):
        labels = np.bincount(part.ravel(), minlength=prepared.classes)
        counts += labels[: prepared.classes]  # ignored labels are larger
    return counts


def weights_of(
    weights: Literal["balanced"] | tuple[float, ...] | None, prepared: Prepared, rows: Indices
) -> tuple[float, ...] | None:
    """Return the class weights that a study asks for, one per class.

    "balanced" is n / (C · n_c) for n labels in C classes, n_c of them in class c (King and Zeng 2001). The
    mean over the labels of `rows` is 1, so the scale of the loss does not change.

    Raises:
        UserError: If there are not as many weights as classes, or a class does not occur.
    """
    if weights is None:
        return None
    names = ", ".join(prepared.class_names)
    if weights == "balanced":
        counts = class_counts(prepared, rows)
        if not counts.all():
            missing = ", ".join(prepared.class_names[index] for index in np.flatnonzero(counts == 0))
            raise UserError(
                'every class among the training samples, for class_weights = "balanced"',
                f"none of {missing}",
                "Set the weights, such as class_weights = [1.0, 2.0], or another seed under [data].",
            )
        return tuple((counts.sum() / (len(counts) * counts)).tolist())
    if len(weights) != prepared.classes or not any(weights):
        raise UserError(
            f"{prepared.classes} class weights, some above 0, one for each class ({names})",
            f"{list(weights)}",
            "Correct class_weights under [train].",
        )
    return weights


def _parts(prepared: Prepared, rows: Indices) -> Iterator[npt.NDArray[Any]]:
    targets = prepared.targets
    size = max(1, AT_ONCE // int(np.prod(targets.shape[1:], dtype=np.int64)))
    for start in range(0, len(rows), size):
        yield targets[np.sort(rows[start : start + size])]
