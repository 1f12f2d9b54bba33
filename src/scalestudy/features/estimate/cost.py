"""What an all-reduce costs: latency and bandwidth of each algorithm, within a node and across nodes.

A message of S bytes takes α + S/B over a link (Hockney, "The communication challenge for MPI", 1994), and a
rank sends and receives at once. Sources of the sums over all ranks:

- ring: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69
  (2009). With ranks in the order of their nodes a node sends one chunk a step: its card carries one ring.
- halving and doubling: Rabenseifner's algorithm, and recursive doubling for short messages, in Thakur,
  Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005).
- tree: two binary trees, each with half of the data: Sanders, Speck and Träff, "Two-tree algorithms for
  full bandwidth broadcast, reduction and scan", Parallel Computing 35 (2009); NCCL has them besides rings.
- hierarchical: scattered sums within each node, an all-reduce across nodes with the card shared by the
  node's workers, and the parts gathered within each node.

All take and give arrays as well as numbers; seconds and bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

Number = Any
"""A float, or an array of draws."""


@dataclass(frozen=True)
class Link:
    """What lies between two neighbours.

    Attributes:
        latency: Seconds of a step of an all-reduce, whatever it carries.
        bandwidth: Bytes per second, either way.
        overhead: Seconds of an all-reduce that do not grow with the ranks: a call, a cycle, a negotiation.
    """

    latency: Number
    bandwidth: Number
    overhead: Number = 0.0


@dataclass(frozen=True)
class Fabric:
    """The links of a run.

    Attributes:
        nodes: Nodes.
        local: Workers of a node, at most.
        across: Between nodes; one card, or all cards together, for all workers of the node.
        within: Between workers of a node.
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
            _larger(self.across.latency, self.within.latency),
            _smaller(self.across.bandwidth, self.within.bandwidth),
            _larger(self.across.overhead, self.within.overhead),
        )


def ring(size: Number, ranks: int, fabric: Fabric) -> Number:
    """2(n − 1) steps of S/n each."""
    if ranks < 2:
        return 0.0
    link = fabric.slowest
    steps = 2 * (ranks - 1)
    return link.overhead + steps * link.latency + steps / ranks * size / link.bandwidth


def tree(size: Number, ranks: int, fabric: Fabric) -> Number:
    """Two binary trees over nodes and within them: 2 log n latencies, and 2 S through each link."""
    if ranks < 2:
        return 0.0
    link = fabric.slowest
    across = _levels(fabric.nodes) * fabric.across.latency
    within = _levels(min(fabric.local, ranks)) * fabric.within.latency
    return link.overhead + 2 * (across + within) + 2 * size / link.bandwidth


def halving(size: Number, ranks: int, fabric: Fabric) -> Number:
    """The quicker of Rabenseifner's algorithm and recursive doubling."""
    if ranks < 2:
        return 0.0
    link, levels = fabric.slowest, _levels(ranks)
    long = 2 * levels * link.latency + 2 * (ranks - 1) / ranks * size / link.bandwidth
    short = levels * (link.latency + size / link.bandwidth)
    return link.overhead + _smaller(long, short)


def hierarchical(size: Number, ranks: int, fabric: Fabric) -> Number:
    """Rings within nodes and across them; the card of a node carries what its workers have to exchange."""
    if ranks < 2:
        return 0.0
    local, total = min(fabric.local, ranks), 0.0
    if local > 1:
        total = total + ring(size, local, Fabric(1, local, fabric.across, fabric.within))
    if fabric.nodes > 1:
        total = total + ring(size, fabric.nodes, Fabric(fabric.nodes, 1, fabric.across, fabric.within))
    return total


def ring_or_tree(size: Number, ranks: int, fabric: Fabric) -> Number:
    """The quicker of the two, as NCCL chooses by its own model of them (`NCCL_ALGO`)."""
    return _smaller(ring(size, ranks, fabric), tree(size, ranks, fabric))


ALGORITHMS: dict[str, Callable[[Number, int, Fabric], Number]] = {
    "ring": ring,
    "tree": tree,
    "ring-or-tree": ring_or_tree,
    "halving": halving,
    "hierarchical": hierarchical,
}
OF_COLLECTIVE = {
    "ring": "ring", "auto": "ring", "nccl": "ring-or-tree", "horovod-gloo": "ring",
    "horovod-nccl": "ring-or-tree", "horovod-mpi": "halving",
}  # fmt: skip
"""By which algorithm each collective sums large messages: TensorFlow's and Gloo's are rings."""


def _levels(count: int) -> int:
    return ceil(log2(count)) if count > 1 else 0


def _smaller(one: Number, other: Number) -> Number:
    import numpy as np

    return np.minimum(one, other)


def _larger(one: Number, other: Number) -> Number:
    import numpy as np

    return np.maximum(one, other)
