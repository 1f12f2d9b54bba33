"""Latency and bandwidth of a link, from all-reduces that were timed over it by message size.

By least squares of relative errors, all parts held non-negative, of t(S) = c + 2(n − 1) α + 2(n − 1)/n S/B:
what all-reduces of n ranks in a ring take (`cost.ring`). Of one number of ranks c and α cannot be told apart;
of the time of the smallest message, what grows with the ranks is anything from nothing to all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, inf, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from scalestudy.features.estimate.cost import Link, Number
from scalestudy.features.estimate.uncertain import NORMAL_95, Uncertain, about, between, exactly

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


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


def fit_link(timed: Sequence[Timed], source: str, near: float | None = None) -> KnownLink | None:
    """The link that these were timed over; None where two sizes are not enough to tell.

    Args:
        timed: All-reduces over two ranks or more.
        source: For people.
        near: Bytes of the messages that matter: sizes count less the further they are from it, by factors
            of 4. All count alike when None.
    """
    import numpy as np

    used = [each for each in timed if each.ranks > 1 and each.seconds > 0]
    counts = sorted({each.ranks for each in used})
    if len({each.bytes for each in used}) < 2:
        return None
    seconds = np.array([each.seconds for each in used])
    steps = np.array([2.0 * (each.ranks - 1) for each in used])
    volume = np.array([2.0 * (each.ranks - 1) / each.ranks * each.bytes for each in used])
    weights = np.array([1.0 if near is None else 1 / (1 + abs(log(each.bytes / near, 4))) for each in used])
    columns = [steps, volume] if len(counts) == 1 else [steps, volume, np.ones(len(used))]
    table = np.stack(columns, axis=1) / seconds[:, None]
    parts = _least_squares(table, weights)
    latency, rate = parts[0], parts[1]
    if rate <= 0:
        return None
    left = np.log(np.maximum(table @ parts, 1e-6))
    squares = float((weights * left) @ left / weights.sum() * len(used))
    spread = sqrt(squares / max(1, len(used) - len(columns)))
    factor = max(LEAST, exp(NORMAL_95 * spread))
    most = counts[-1]
    fixed = float(parts[2]) if len(parts) > 2 else 0.0
    small = fixed + 2 * (most - 1) * float(latency)
    if len(counts) == 1:
        hops = between(0.0, 1.0)
    else:
        hops = exactly(2 * (most - 1) * float(latency) / small if small else 0.0)
    return KnownLink(about(small, factor), most, hops, about(1 / float(rate), factor), source, measured=True)


def _least_squares(table: "Array", weights: "Array") -> "Array":
    """The non-negative parts that bring every row of `table` nearest to 1; of two or three, by trying all."""
    import numpy as np

    scales, roots = table.max(axis=0), np.sqrt(weights)
    scaled = table / scales * roots[:, None]
    best, least = np.zeros(table.shape[1]), inf
    for count in range(1, table.shape[1] + 1):
        for chosen in combinations(range(table.shape[1]), count):
            some, *_ = np.linalg.lstsq(scaled[:, chosen], roots, rcond=None)
            error = float(np.sum((scaled[:, chosen] @ some - roots) ** 2))
            if (some >= 0).all() and error < least * (1 - 1e-9):
                best, least = np.zeros(table.shape[1]), error
                best[list(chosen)] = some
    parts: Array = best / scales
    return parts
