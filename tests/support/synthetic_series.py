"""Synthetic series of plain numbers: worker counts and times with known parameters, or with noise."""

import math

import numpy as np

from scalestudy.analysis.measures import build_measure
from scalestudy.analysis.runs import Key, RunsByRow
from scalestudy.analysis.scales import LOGARITHM
from scalestudy.analysis.scaling_model import Series, model_of


def series(times, *, update="growing", per_node=None, runs=3, spread=0.0, noise=None):
    """Runs for each worker count: its time with factors `spread` about it, or with noise.

    Args:
        times: Seconds by worker count.
        per_node: Workers of a full node; None if nodes are unknown.
        noise: A generator; its normal numbers times `spread` are added to the logarithms.
    """
    steps = np.tile(
        np.linspace(-1, 1, runs) if runs > 1 else np.zeros(1), (len(times), 1)
    )
    if noise is None:
        # The order differs between rows, so that blocks have no common effect.
        steps = np.array([np.roll(row, place) for place, row in enumerate(steps)])
    else:
        steps = noise.standard_normal(steps.shape)
    key = Key("horovod", min(times), "{}")
    values = {
        key.on(count): {
            seed: seconds * math.exp(spread * step) for seed, step in enumerate(row)
        }
        for (count, seconds), row in zip(times.items(), steps.tolist(), strict=True)
    }
    return Series(
        key=key,
        different=tuple(sorted(times)),
        times=build_measure(
            values, dict.fromkeys(values, LOGARITHM), [list(values)], LOGARITHM
        ),
        samples=6000,
        update=update,
        nodes={n: -(-n // per_node) for n in times} if per_node else {},
    )


def model(times, **options):
    """The fitted model of such runs."""
    return model_of(series(times, **options), RunsByRow())
