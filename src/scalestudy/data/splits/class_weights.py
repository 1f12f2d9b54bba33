"""Weights of classes in the loss, from how often they occur in the training set."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from scalestudy.data.loading.order import Indices
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError

AT_ONCE = 2**26
"""Most labels that are counted at once."""


def class_counts(prepared: Prepared, rows: Indices) -> npt.NDArray[np.int64]:
    """Labels of each class among those of `rows`, padding left out; shape [classes]."""
    counts = np.zeros(prepared.classes, np.int64)
    for part in _parts(prepared, rows):
        labels = np.bincount(part.ravel(), minlength=prepared.classes)
        counts += labels[: prepared.classes]  # padding lies beyond the classes
    return counts


def weights_of(
    weights: Literal["balanced"] | tuple[float, ...] | None, prepared: Prepared, rows: Indices
) -> tuple[float, ...] | None:
    """The weights that a study asks for, one a class.

    "balanced" is n / (C · n_c) of n labels in C classes, n_c of them of the class (King and Zeng 2001): their
    mean over the labels of `rows` is 1, so that the learning rate keeps its meaning.

    Raises:
        UserError: They are of another number of classes, or a class does not occur.
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
    """The targets of `rows`, some at a time."""
    targets = prepared.targets
    size = max(1, AT_ONCE // int(np.prod(targets.shape[1:], dtype=np.int64)))
    for start in range(0, len(rows), size):
        yield targets[np.sort(rows[start : start + size])]
