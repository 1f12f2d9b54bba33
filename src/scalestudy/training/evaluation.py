"""Evaluation over a whole set: every sample once, numerators and denominators summed, divided once."""

from typing import NamedTuple

import numpy as np

from scalestudy.data.loading.loader import Loader
from scalestudy.data.loading.order import Indices
from scalestudy.engines.base import Trainer
from scalestudy.engines.group import Group
from scalestudy.measure.heartbeat import Heartbeat


class Measured(NamedTuple):
    """What was found over a set.

    Attributes:
        values: Loss, metrics, and metrics' values for each class, by name.
        matrices: Confusion matrices by the names of their metrics, a row for each true class.
    """

    values: dict[str, float]
    matrices: dict[str, list[list[int]]]


def measure(trainer: Trainer, group: Group, loader: Loader, samples: Indices, heart: Heartbeat) -> Measured:
    """Loss and metrics over `samples` (rows, shape [M], at least one), the same on every rank.

    Args:
        trainer: What computes.
        group: The processes, each of which evaluates its slices.
        loader: Of calls of one step.
        samples: The rows.
        heart: Is told of every call.
    """
    calls = iter(loader.epoch(samples))
    sums = trainer.evaluate(next(calls))
    for call in calls:
        heart.enter("evaluation")
        sums = [a + b for a, b in zip(sums, trainer.evaluate(call), strict=True)]
    flat = group.host_sum(np.concatenate([np.ravel(each) for each in sums]))
    pieces = np.split(flat, np.cumsum([np.size(each) for each in sums])[:-1])
    sums = [piece.reshape(np.shape(each)) for piece, each in zip(pieces, sums, strict=True)]
    return Measured(trainer.results(sums), trainer.matrices(sums))
