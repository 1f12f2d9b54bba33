"""All-reduces timed over the units of this node."""

import os

import pytest

from scalestudy.check.node_all_reduce import all_reduce_here
from scalestudy.launch.resources import cores
from scalestudy.measure.cpu_topology import cpu_topology

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(len(cores()) < 2, reason="one core alone has none to combine with"),
]


def test_every_all_reduce_that_works_is_timed_by_size_and_cores_are_as_before():
    before = os.sched_getaffinity(0)
    topology = cpu_topology(cores()[:2])
    sums, notes = all_reduce_here(topology)
    by_name: dict[str, list[int]] = {}
    for each in sums:
        assert each.ranks == 2
        assert each.bus_bandwidth > 0
        by_name.setdefault(each.collective, []).append(each.bytes)
    assert "TensorFlow RING" in by_name, notes
    assert all(sizes == sorted(sizes) and len(sizes) > 3 for sizes in by_name.values())
    assert os.sched_getaffinity(0) == before
