"""Costs of all-reduces over links that are known within a range, and links fitted to timed all-reduces.

A message of S bytes takes α + S/B over a link (Hockney, "The communication challenge for MPI", 1994), and a
rank sends and receives at once. Sources of the costs of all-reduces:

- ring: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69
  (2009). With ranks in the order of their nodes a node sends one chunk a step: its card carries one ring.
- tree: two binary trees, each with half of the data: Sanders, Speck and Träff, "Two-tree algorithms for
  full bandwidth broadcast, reduction and scan", Parallel Computing 35 (2009); NCCL has them besides rings.

Costs take and give arrays of draws as well as numbers; seconds and bytes.
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
"""Factor within which a fitted link is known at best: a network is never the same for hours."""


class Link(NamedTuple):
    """What lies between two neighbours: seconds of a step of an all-reduce, and bytes per second, either way.

    `overhead` are seconds of an all-reduce that do not grow with the ranks: a call, a cycle, a negotiation.
    """

    latency: Number
    bandwidth: Number
    overhead: Number = 0.0


@dataclass(frozen=True)
class Fabric:
    """The links of a run over `nodes` of `local` workers at most.

    Those between nodes are of one card, or all cards together, for all workers of the node.
    """

    nodes: int
    local: int
    across: Link
    within: Link

    @property
    def slowest(self) -> Link:
        """What a step waits for that goes over all links at once."""
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
    """2(n − 1) steps of S/n each."""
    if ranks < 2:
        return 0.0
    link, steps = fabric.slowest, 2 * (ranks - 1)
    return link.overhead + steps * link.latency + steps / ranks * size / link.bandwidth


def tree(size: Number, ranks: int, fabric: Fabric) -> Number:
    """Two binary trees over nodes and within them: 2 log n latencies, and 2 S through each link."""
    if ranks < 2:
        return 0.0
    link = fabric.slowest
    across = _levels(fabric.nodes) * fabric.across.latency
    within = _levels(min(fabric.local, ranks)) * fabric.within.latency
    return link.overhead + 2 * (across + within) + 2 * size / link.bandwidth


def ring_or_tree(size: Number, ranks: int, fabric: Fabric) -> Number:
    """The faster of the two, as NCCL (`NCCL_ALGO`) and MPI choose by models of their own."""
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
    """A link as far as it is known.

    Attributes:
        small: Seconds of an all-reduce of no bytes, over `ranks`.
        ranks: Over how many ranks `small` is; 0 where `small` is the latency of a single step.
        hops: Share of `small` that grows with the number of steps; the rest is the same at any number.
        bandwidth: Bytes per second.
        source: Where it is from, for people.
    """

    small: Uncertain
    ranks: int
    hops: Uncertain
    bandwidth: Uncertain
    source: str

    def of(self, small: Number, hops: Number, bandwidth: Number) -> Link:
        """The link, given draws of its three numbers."""
        if self.ranks == 0:
            return Link(small, bandwidth)
        return Link(hops * small / (2 * (self.ranks - 1)), bandwidth, (1 - hops) * small)


class TimedAllReduce(NamedTuple):
    """An all-reduce as `scalestudy check` has timed it."""

    collective: str
    ranks: int
    hosts: int | None
    bytes: int
    seconds: float


def fit_link(rows: Sequence[TimedAllReduce], source: str, near: float | None = None) -> KnownLink | None:
    """The link that these were timed over; None where two sizes are not enough to tell.

    Least squares of relative errors, all parts held non-negative, of t(S) = c + 2(n − 1) α + 2(n − 1)/n S/B.
    One number of ranks cannot tell c from α: what grows with the ranks is then anything from nothing to all
    of the time of the smallest message.

    Args:
        rows: All-reduces, of one collective.
        source: Where they are from, for people.
        near: Bytes of the messages that matter: sizes count less the further they are from it, by factors
            of 4. All count alike when None.
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
