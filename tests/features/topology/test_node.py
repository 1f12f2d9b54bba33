"""Looking at a node without a terminal: what is measured, and what is told meanwhile."""

import pytest

from scalestudy.features.topology import node as topology
from scalestudy.features.topology.node import TopologyListener, node_topology
from scalestudy.features.topology.pairs import Pairs
from scalestudy.features.topology.units import Topology, Unit
from scalestudy.measure.bandwidth import AllReduce

PAIRS = Pairs(((None, 1e9), (1e9, None)), 1, "stand-in")
SUM = AllReduce("TensorFlow RING", 2, 1024, 1e-3)


class Heard(TopologyListener):
    def __init__(self):
        self.told = []

    def pairs_started(self):
        self.told.append("pairs")

    def pair_measured(self, done, total):
        self.told.append((done, total))

    def all_reduces_started(self):
        self.told.append("sums")

    def measuring_ended(self):
        self.told.append("end")


@pytest.fixture
def node(monkeypatch):
    """A node of so many units, on which measuring only says that it was done."""

    def of(count, *, framework=True):
        units = tuple(Unit(f"core {index}", "", (index,), (0,)) for index in range(count))
        monkeypatch.setattr(topology, "gpu_topology", lambda: None)
        monkeypatch.setattr(
            topology, "cpu_topology", lambda _: Topology("cpu", units, (("X",) * count,) * count)
        )
        monkeypatch.setattr(topology, "measure_pairs", lambda _, on_progress: on_progress(2, 2) or PAIRS)
        monkeypatch.setattr(topology.installed, "has_tensorflow", lambda: framework)
        monkeypatch.setattr(topology, "all_reduce_here", lambda _: ([SUM], ["a note"]))

    return of


def test_pairs_and_sums_are_measured_and_told(node, capfd):
    node(2)
    heard = Heard()
    found = node_topology(listener=heard)
    assert (found.pairs, found.sums, found.notes) == (PAIRS, (SUM,), ("a note",))
    assert heard.told == ["pairs", (2, 2), "sums", "end"]
    assert node_topology().sums == (SUM,)
    assert capfd.readouterr() == ("", "")


def test_without_a_framework_no_sum_is_measured(node):
    node(2, framework=False)
    heard = Heard()
    found = node_topology(listener=heard)
    assert found.pairs == PAIRS and found.sums == () and "no TensorFlow here" in found.notes[0]
    assert heard.told[-1] == "end" and "sums" not in heard.told


def test_one_unit_alone_has_no_links(node):
    node(1)
    heard = Heard()
    found = node_topology(listener=heard)
    assert found.pairs is None and "one unit alone" in found.notes[0] and heard.told == []


def test_measuring_can_be_left_out(node):
    node(2)
    found = node_topology(measure=False)
    assert (found.pairs, found.sums, found.notes) == (None, (), ()) and found.host
