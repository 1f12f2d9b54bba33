"""Costs of all-reduces over links with uncertain properties, and links fitted to timed all-reduces.

A message of S bytes takes α + S/B over a link (Hockney, "The communication challenge for MPI", 1994). A rank
sends and receives at the same time. Sources of the costs:

- ring: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69
  (2009). With ranks ordered by node, a node sends one chunk per step, so its card carries one ring.
- tree: two binary trees, each with half of the data: Sanders, Speck and Träff, "Two-tree algorithms for
  full bandwidth broadcast, reduction and scan", Parallel Computing 35 (2009). NCCL uses them besides rings.

Cost functions accept and return numbers or arrays of draws, in seconds and bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, exp, log, log2, sqrt
from typing import Any, NamedTuple

import numpy as np

from scalestudy.features.advise.uncertain import NORMAL_95, Uncertain, about, between, exactly

Number = Any
"""A float, or an array of draws."""
BEST_FIT = 1.1
"""Smallest uncertainty factor of a fitted link, because networks change within hours."""


class Link(NamedTuple):
    """A link between two ranks: seconds per step of an all-reduce, and bytes per second in each direction.

    `overhead` is the time of an all-reduce that does not depend on the number of ranks (call, cycle,
    negotiation), in seconds.
    """

    latency: Number
    bandwidth: Number
    overhead: Number = 0.0


@dataclass(frozen=True)
class Fabric:
    """The links of a run on `nodes` nodes with at most `local` workers each.

    All workers of a node share the link between nodes: one network card, or all of them together.
    """

    nodes: int
    local: int
    across: Link
    within: Link

    @property
    def slowest(self) -> Link:
        """The link that limits a step which uses all links at once."""
        if self.nodes == 1:
            return self.within
        if self.local == 1:
            return self.across
        return Link(
            np.maximum(self.across.latency, self.within.latency),
            np.minimum(self.across.bandwidth, self.within.bandwidth),
            np.maximum(self.across.overhead, self.within.overhead),
        )


def ring(size: Number, ranks: int, fabric: Fabric) -> Number:
    """Return the seconds of a ring all-reduce: 2(n − 1) steps of S/n bytes each."""
    if ranks < 2:
        return 0.0
    link, steps = fabric.slowest, 2 * (ranks - 1)
    return link.overhead + steps * link.latency + steps / ranks * size / link.bandwidth


def tree(size: Number, ranks: int, fabric: Fabric) -> Number:
    """Return the seconds for two binary trees over nodes and within them: 2 log n latencies, 2 S per link."""
    if ranks < 2:
        return 0.0
    link = fabric.slowest
    across = _levels(fabric.nodes) * fabric.across.latency
    within = _levels(min(fabric.local, ranks)) * fabric.within.latency
    return link.overhead + 2 * (across + within) + 2 * size / link.bandwidth


def ring_or_tree(size: Number, ranks: int, fabric: Fabric) -> Number:
    """Return the faster of the two, as NCCL (`NCCL_ALGO`) and MPI choose with their own models."""
    return np.minimum(ring(size, ranks, fabric), tree(size, ranks, fabric))


def _levels(count: int) -> int:
    return ceil(log2(count)) if count > 1 else 0


ALGORITHMS: dict[str, Callable[[Number, int, Fabric], Number]] = {
    "ring": ring,
    "tree": tree,
    "ring-or-tree": ring_or_tree,
}


@dataclass(frozen=True)
class KnownLink:
    """A link whose properties are known within ranges.

    Attributes:
        small: Seconds of an all-reduce of zero bytes over `ranks` ranks.
        ranks: Number of ranks of `small`; 0 if `small` is the latency of a single step.
        hops: Share of `small` that grows with the number of steps; the rest is constant.
        bandwidth: Bytes per second.
        source: Where the numbers are from, for display.
    """

    small: Uncertain
    ranks: int
    hops: Uncertain
    bandwidth: Uncertain
    source: str

    def of(self, small: Number, hops: Number, bandwidth: Number) -> Link:
        """Return the link for draws of its three numbers."""
        if self.ranks == 0:
            return Link(small, bandwidth)
        return Link(hops * small / (2 * (self.ranks - 1)), bandwidth, (1 - hops) * small)


class TimedAllReduce(NamedTuple):
    """An all-reduce timed by `scalestudy check`."""

    collective: str
    ranks: int
    hosts: int | None
    bytes: int
    seconds: float


def fit_link(rows: Sequence[TimedAllReduce], source: str, near: float | None = None) -> KnownLink | None:
    """Fit a link to timed all-reduces; None if there are fewer than two sizes or no bandwidth can be fitted.

    The fit of t(S) = c + 2(n − 1) α + 2(n − 1)/n S/B minimises squared relative errors, with non-negative
    parts. A single number of ranks cannot separate c from α. Then the share that grows with the ranks is
    anywhere between zero and all of the time of the smallest message.

    Args:
        rows: All-reduces of one collective.
        source: Where they are from, for display.
        near: Bytes of typical messages. Sizes weigh less, the more factors of 4 they are away from it. If
            None, all sizes weigh the same.
    """
    from scipy.optimize import nnls

    used = [row for row in rows if row.ranks > 1 and row.seconds > 0]
    if len({row.bytes for row in used}) < 2:
        return None
    ranks = np.array([float(row.ranks) for row in used])
    sizes = np.array([float(row.bytes) for row in used])
    seconds = np.array([row.seconds for row in used])
    weights = np.ones(len(used)) if near is None else 1 / (1 + np.abs(np.log(sizes / near)) / log(4))
    several = len(set(ranks)) > 1
    columns = [2 * (ranks - 1), 2 * (ranks - 1) / ranks * sizes, *([np.ones(len(used))] * several)]
    table = np.stack(columns, axis=1) / seconds[:, None]
    scales, roots = table.max(axis=0), np.sqrt(weights)
    parts = nnls(table / scales * roots[:, None], roots)[0] / scales
    latency, rate = float(parts[0]), float(parts[1])
    if rate <= 0:
        return None
    residuals = np.log(np.maximum(table @ parts, 1e-6))
    squares = float((weights * residuals) @ residuals / weights.sum() * len(used))
    factor = max(BEST_FIT, exp(NORMAL_95 * sqrt(squares / max(1, len(used) - len(columns)))))
    most = int(ranks.max())
    growing = 2 * (most - 1) * latency
    small = growing + (float(parts[2]) if several else 0.0)
    hops = exactly(growing / small if small else 0.0) if several else between(0.0, 1.0)
    return KnownLink(about(small, factor), most, hops, about(1 / rate, factor), source)
