"""The learning rate of every step as a table, from scaling, warm-up and schedule."""

import math

import numpy as np
from numpy.typing import NDArray

from scalestudy.config.point import Point

PUBLISHED_STEPS = ((0.4, 1 / 2), (0.6, 1 / 4), (0.75, 1 / 8))
"""Pairs of a share of the steps, and the factor of the rate from there on: ½ from epoch 80, ¼ from 120,
⅛ from 150 of 200 (Zenodo 7639190)."""


def rates_of(point: Point, steps_per_epoch: int) -> NDArray[np.float64]:
    """Return the learning rate of each step of a point's run, shape [steps]."""
    train = point.train
    steps = point.train.epochs * steps_per_epoch
    rates = rate_table(
        base=train.learning_rate,
        kappa=point.batch_ratio,
        scaling=train.learning_rate_scaling,
        schedule=train.schedule,
        steps=steps,
        warmup=min(steps, round(train.warmup_epochs * steps_per_epoch)),
    )
    if train.frozen_epochs:
        # Pretrained layers are unfrozen then, and a high rate would undo what they know.
        rates[train.frozen_epochs * steps_per_epoch :] *= train.unfrozen_rate
    return rates


def peak_rate(base: float, kappa: float, scaling: str) -> float:
    """Return the learning rate scaled for a global batch of `kappa` reference batches.

    "linear" is Goyal et al. 2017 (arXiv:1706.02677); "sqrt" is Malladi et al. 2022
    (arXiv:2205.10287) for adaptive methods, Krizhevsky 2014 for SGD.
    """
    if scaling == "linear":
        return base * kappa
    if scaling == "sqrt":
        return base * math.sqrt(kappa)
    return base


def rate_table(
    *,
    base: float,
    kappa: float,
    scaling: str,
    schedule: str,
    steps: int,
    warmup: int,
) -> NDArray[np.float64]:
    """Return the learning rate of each step, shape [steps].

    During warm-up the rate rises linearly to the scaled rate: from the unscaled rate if scaling raised it
    (Goyal et al. 2017), otherwise from zero. "linear" and "cosine" schedules end at zero. `kappa` is the
    global batch divided by the reference batch; `warmup` is a number of steps, included in `steps`.
    """
    peak = peak_rate(base, kappa, scaling)
    step = np.arange(steps, dtype=np.float64)
    # The decay begins where the warm-up ends.
    done = np.clip((step - warmup) / max(steps - warmup, 1), 0, 1)
    rates = peak * _factor(schedule, done, step / steps)
    if warmup:
        start = 0.0
        if peak > base:
            start = base
        rising = step < warmup
        # The last step of the warm-up has the full rate, and no step has none.
        rates[rising] = start + (peak - start) * (step[rising] + 1) / warmup
    return rates


def _factor(
    schedule: str,
    done: NDArray[np.float64],
    overall: NDArray[np.float64],
) -> NDArray[np.float64]:
    if schedule == "constant":
        return np.ones_like(done)
    if schedule == "linear":
        return 1 - done
    if schedule == "cosine":
        return (1 + np.cos(np.pi * done)) / 2
    factor = np.ones_like(done)
    for start, value in PUBLISHED_STEPS:
        factor[overall >= start] = value
    return factor
