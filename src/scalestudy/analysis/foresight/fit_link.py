"""Latency and bandwidth of a link, from all-reduces that were timed over it by message size.

By least squares of relative errors, all parts held non-negative, of t(S) = c + 2(n − 1) α + 2(n − 1)/n S/B:
what all-reduces of n ranks in a ring take (`cost.ring`). Of one number of ranks c and α cannot be told apart;
of the time of the smallest message, what grows with the ranks is anything from nothing to all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import NamedTuple

from scalestudy.analysis.foresight.cost import Link, Number
from scalestudy.analysis.foresight.uncertain import NORMAL_95, Uncertain, about, between, exactly


class Timed(NamedTuple):
    """An all-reduce that was timed."""

    ranks: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class KnownLink:
    """A link as far as it is known.

    Attributes:
        small: Seconds of an all-reduce of no bytes, over `ranks`.
        ranks: Over how many ranks `small` is; 0 where `small` is the latency of a single step.
        hops: Share of `small` that grows with the number of steps; the rest is the same at any number.
        bandwidth: Bytes per second.
        source: Where it is from, for people.
        measured: Whether it was measured by the collective that will be used, rather than stated.
    """

    small: Uncertain
    ranks: int
    hops: Uncertain
    bandwidth: Uncertain
    source: str
    measured: bool

    def of(self, small: Number, hops: Number, bandwidth: Number) -> Link:
        """The link, of draws of its three numbers."""
        if self.ranks == 0:
            return Link(small, bandwidth)
        return Link(hops * small / (2 * (self.ranks - 1)), bandwidth, (1 - hops) * small)


LEAST = 1.1
"""Factor within which a fit is known at best: a network is never the same for hours."""


def fit_link(timed: Sequence[Timed], source: str) -> KnownLink | None:
    """The link that these were timed over; None where two sizes are not enough to tell.

    Args:
        timed: All-reduces over two ranks or more.
        source: For people.
    """
    import numpy as np
    from scipy.optimize import nnls

    used = [each for each in timed if each.ranks > 1 and each.seconds > 0]
    counts = sorted({each.ranks for each in used})
    if len({each.bytes for each in used}) < 2:
        return None
    seconds = np.array([each.seconds for each in used])
    steps = np.array([2.0 * (each.ranks - 1) for each in used])
    volume = np.array([2.0 * (each.ranks - 1) / each.ranks * each.bytes for each in used])
    columns = [steps, volume] if len(counts) == 1 else [steps, volume, np.ones(len(used))]
    scales = [float(column.max()) for column in columns]
    table = np.stack([column / scale / seconds for column, scale in zip(columns, scales, strict=True)], 1)
    found, _ = nnls(table, np.ones(len(used)))
    parts = [float(value) / scale for value, scale in zip(found, scales, strict=True)]
    latency, rate = parts[0], parts[1]
    if rate <= 0:
        return None
    left = np.log(np.maximum(table @ found, 1e-6))
    spread = sqrt(float(left @ left) / max(1, len(used) - len(columns)))
    factor = max(LEAST, exp(NORMAL_95 * spread))
    most = counts[-1]
    fixed = parts[2] if len(parts) > 2 else 0.0
    small = fixed + 2 * (most - 1) * latency
    if len(counts) == 1:
        hops = between(0.0, 1.0)
    else:
        hops = exactly(2 * (most - 1) * latency / small if small else 0.0)
    return KnownLink(about(small, factor), most, hops, about(1 / rate, factor), source, measured=True)
