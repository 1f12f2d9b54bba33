"""This node's units, the links between them, and the bandwidth measured beside them."""

import socket
from dataclasses import dataclass

from scalestudy.features.topology.all_reduce import all_reduce_here
from scalestudy.features.topology.gpus import gpu_topology
from scalestudy.features.topology.pairs import Pairs, measure_pairs
from scalestudy.features.topology.units import Topology
from scalestudy.machine import cores, installed
from scalestudy.machine.cpu_topology import cpu_topology
from scalestudy.measure.bandwidth import AllReduce


class TopologyListener:
    """Hears how far measuring is. This one tells nobody; others say what they want to say."""

    def pairs_started(self) -> None:
        """Bytes are moved between each two units."""

    def pair_measured(self, done: int, total: int) -> None:
        """So many of all pairs are measured."""

    def all_reduces_started(self) -> None:
        """All units sum, with a framework started in each process."""

    def measuring_ended(self) -> None:
        """Nothing is measured any more."""


@dataclass(frozen=True)
class NodeTopology:
    """A node, and what was measured on it.

    Attributes:
        host: Its name.
        topology: Its units and links.
        pairs: Bandwidth between each two; None where it was not measured.
        sums: All-reduces over all units.
        notes: What kept anything from being measured.
    """

    host: str
    topology: Topology
    pairs: Pairs | None = None
    sums: tuple[AllReduce, ...] = ()
    notes: tuple[str, ...] = ()


def node_topology(*, measure: bool = True, listener: TopologyListener | None = None) -> NodeTopology:
    """Look at this node.

    Args:
        measure: Whether to measure bandwidth as well.
        listener: Hears how far measuring is.

    Raises:
        RunError: If a process that measures ends early.
    """
    host, topology = socket.gethostname(), gpu_topology() or cpu_topology(cores.granted())
    if not measure:
        return NodeTopology(host, topology)
    if len(topology.units) < 2:
        return NodeTopology(host, topology, notes=("one unit alone has no links to measure",))
    listener = listener or TopologyListener()
    listener.pairs_started()
    try:
        pairs = measure_pairs(topology, on_progress=listener.pair_measured)
        if not installed.has_tensorflow():
            note = "no TensorFlow here: no all-reduce was measured"
            return NodeTopology(host, topology, pairs, notes=(note,))
        listener.all_reduces_started()
        sums, notes = all_reduce_here(topology)
    finally:
        listener.measuring_ended()
    return NodeTopology(host, topology, pairs, tuple(sums), tuple(notes))
