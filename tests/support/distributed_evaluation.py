"""Labels and probabilities as in a data-parallel evaluation, and how workers combine them."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from scalestudy.tasks.task import DataInfo

IGNORED = 255


class EvaluatedSet(NamedTuple):
    """A set: its DataInfo, labels and outputs."""

    data: DataInfo
    targets: np.ndarray
    outputs: np.ndarray

    @property
    def flat(self):
        """Labels [N] and probabilities [N, classes], without ignored labels."""
        labels = self.targets.ravel()
        outputs = self.outputs.reshape(len(labels), -1).astype(np.float64)
        if outputs.shape[1] == 1:
            outputs = np.concatenate([1 - outputs, outputs], axis=1)
        valid = labels != IGNORED if self.data.ignore else np.ones(len(labels), bool)
        return labels[valid].astype(int), outputs[valid]

    @property
    def predicted(self):
        """Predicted class of each label that is not ignored."""
        return (
            self.flat[1].argmax(axis=1)
            if self.outputs.shape[-1] > 1
            else (self.flat[1][:, 1] >= 0.5) * 1
        )


def evaluated_set(
    kind: str,
    classes: int,
    seed: int = 0,
    samples: int = 9,
    occurring: int | None = None,
) -> EvaluatedSet:
    """Create labels of `occurring` classes and outputs that are right more often than not.

    Two classes have one output channel, masks have ignored pixels, and there are ties.
    """
    draw = np.random.default_rng(seed)
    shape = (samples, 10, 12) if kind == "masks" else (samples * 12,)
    targets = draw.integers(0, occurring or classes, shape)
    if kind == "masks":
        targets = np.sort(targets, axis=2)  # contiguous, and therefore with boundaries
        targets[draw.random(shape) < 0.1] = IGNORED
    single = classes == 2
    right = np.where(targets == IGNORED, 0, targets)
    scores = draw.normal(0, 1.5, (*shape, classes)) + 2 * np.eye(classes)[right]
    outputs = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    outputs[0] = 1 / classes
    outputs = (outputs[..., 1:] if single else outputs).astype("float32")
    dtype = "uint8" if kind == "masks" else "int32"
    data = DataInfo(kind, (10, 12, 1), classes, IGNORED if kind == "masks" else None)
    return EvaluatedSet(data, targets.astype(dtype), outputs)


def shares(count: int, workers: int, seed: int) -> list[slice]:
    """Consecutive shares of `count` samples with random sizes, some of them empty."""
    ends = np.sort(np.random.default_rng(seed).integers(0, count + 1, workers - 1))
    cuts = [0, *ends.tolist(), count]
    return [slice(start, stop) for start, stop in pairwise(cuts)]


def sums_of(metric, targets, outputs):
    """One worker's increments of a metric's variables, as in evaluation: from zero, without state."""
    import tensorflow as tf

    start = [tf.zeros(variable.shape, variable.dtype) for variable in metric.variables]
    if not len(targets):
        return [np.zeros(each.shape) for each in start]
    return [
        np.asarray(each)
        for each in metric.stateless_update_state(start, targets, outputs)
    ]


def value_of(metric, sums):
    """The metric's value when its variables hold these sums."""
    for variable, value in zip(metric.variables, sums, strict=True):
        variable.assign(value)
    return float(np.asarray(metric.result()))


def measured(metric, given: EvaluatedSet) -> float:
    """The metric over the whole set."""
    return value_of(metric, sums_of(metric, given.targets, given.outputs))
