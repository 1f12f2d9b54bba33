"""All-reduces over the units of this node: on which cores, by which names, and what is said of the rest."""

import os

import pytest

from scalestudy.check.line import TOPICS, Bandwidth, Report, failed, passed, warned
from scalestudy.check.local import check_here
from scalestudy.features.topology import all_reduce as node_all_reduce
from scalestudy.features.topology.all_reduce import all_reduce_here
from scalestudy.machine import cores
from scalestudy.machine.cpu_topology import cpu_topology
from scalestudy.measure.bandwidth import SIZES

pytestmark = pytest.mark.skipif(len(cores.granted()) < 2, reason="one core alone has none to combine with")
LINES = (
    failed("collectives", "n1", "auto stalled", "Look."),
    warned("devices", "n1", "no question of sums", "None."),
    passed("collectives", "n1", "ring over 2 ranks"),
)


class Checked:
    """A check with real processes that only look at their cores; sums that it is said to have timed."""

    def __init__(self):
        self.report, self.plan = None, None

    def __call__(self, folder, plan, *, waiting):
        only_cores = tuple(topic for topic in TOPICS if topic != "cores")
        self.plan, self.report = plan, check_here(folder, plan.model_copy(update={"skip": only_cores}))
        rows = [
            Bandwidth(collective=name, ranks=plan.workers, bytes=size, seconds=1.0, algorithm_bandwidth=size,
                      bus_bandwidth=size)
            for name in ("ring", "horovod-gloo")
            for size in plan.sizes
        ]  # fmt: skip
        return Report(lines=LINES, bandwidth=rows)


@pytest.fixture
def checked(monkeypatch):
    stand_in = Checked()
    monkeypatch.setattr(node_all_reduce, "check_here", stand_in)
    return stand_in


def test_a_process_for_each_unit_sums_on_its_core_and_cores_are_as_before(checked):
    before = os.sched_getaffinity(0)
    all_reduce_here(cpu_topology(cores.granted()[:2]))
    (line,) = [line for line in checked.report.lines if line.topic == "cores"]
    assert (line.status, line.seen) == ("pass", "2 cores granted, 2 x 1 asked for")
    assert (checked.plan.workers, checked.plan.device) == (2, "cpu")
    assert checked.plan.wants("collectives") and checked.plan.wants("bandwidth")
    assert os.sched_getaffinity(0) == before


def test_every_all_reduce_that_works_is_told_by_size_and_what_kept_others_is_noted(checked):
    sums, notes = all_reduce_here(cpu_topology(cores.granted()[:2]))
    by_name: dict[str, list[int]] = {}
    for each in sums:
        assert each.ranks == 2
        assert each.bus_bandwidth > 0
        by_name.setdefault(each.collective, []).append(each.bytes)
    assert by_name == {"TensorFlow RING": list(SIZES), "Horovod Gloo": list(SIZES)}
    assert sorted(SIZES) == list(SIZES) and len(SIZES) > 3
    assert notes == ["collectives, n1: auto stalled. Look."]
