"""Evaluation over a whole set: every sample once, numerators and denominators summed, divided once."""

import numpy as np

from scalestudy.data.loader import Loader
from scalestudy.data.order import Indices
from scalestudy.engines.base import Trainer
from scalestudy.measure.heartbeat import Heartbeat
from scalestudy.strategies.group import Group


def evaluate(
    trainer: Trainer, group: Group, loader: Loader, samples: Indices, heart: Heartbeat
) -> dict[str, float]:
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
    return trainer.results([piece.reshape(np.shape(each)) for piece, each in zip(pieces, sums, strict=True)])
