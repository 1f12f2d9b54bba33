"""The quality that a constant prediction reaches, without learning."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scalestudy.config.metric_senses import gain
from scalestudy.data.samples import Indices
from scalestudy.data.store.prepared import Prepared, class_counts
from scalestudy.engines.interface import Trainer

AT_ONCE = 2**22
"""Maximum number of output values created at once."""


class Chance(NamedTuple):
    """The quality reached without learning.

    Attributes:
        quality: Best quality of a constant prediction; None if the outputs are not classes.
        labels: Number of labels it was measured on: one per sample, or one per pixel.
    """

    quality: float | None
    labels: int


def measure_chance(trainer: Trainer, prepared: Prepared, samples: Indices) -> Chance:
    """Measure `Chance` over `samples` (rows, shape [M])."""
    if not prepared.classes:
        return Chance(None, len(samples))
    labels_of_sample = int(np.prod(prepared.targets.shape[1:]))
    quality = constant_quality(trainer, prepared, samples)
    return Chance(quality, len(samples) * labels_of_sample)


def constant_quality(
    trainer: Trainer,
    prepared: Prepared,
    samples: Indices,
) -> float | None:
    """Return the best quality over `samples` (rows, shape [M]) of a prediction that ignores the inputs.

    It tries to predict the most frequent class everywhere (with two classes, each of them), and the class
    frequencies as probabilities. The resulting accuracy is the share of the majority class; the resulting
    IoU is the share of the foreground.

    Returns:
        None if the task's outputs are not classes, or if no such quality is finite.
    """
    better = trainer.sense.better
    counts = class_counts(prepared, samples)
    # Every label may be ignored.
    shares = counts / max(1.0, counts.sum())
    tried = 1
    # The foreground, by which masks are judged, is often the rarer class.
    if len(shares) == 2:
        tried = 2
    # Stable, so that of equally frequent classes the first is tried on every machine.
    by_share = np.argsort(-shares, kind="stable")
    certain = np.eye(len(shares))[by_share[:tried]]
    best: float | None = None
    for answer in (*certain, shares):
        value = trainer.constant(_parts(prepared, samples), answer)
        if value is None or better is None or not np.isfinite(value):
            continue
        if best is None or gain(value, better) > gain(best, better):
            best = value
    return best


def _parts(prepared: Prepared, samples: Indices) -> Iterator[NDArray[np.generic]]:
    targets = prepared.targets
    labels_of_sample = int(np.prod(targets.shape[1:]))
    outputs_of_sample = labels_of_sample * prepared.classes
    size = max(1, AT_ONCE // outputs_of_sample)
    for start in range(0, len(samples), size):
        part = samples[start : start + size]
        yield targets[np.sort(part)]
