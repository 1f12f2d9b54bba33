"""What is measured between units: copies by the framework, and all-reduces of a check."""

import json
import os
import subprocess
import sys

import pytest

from scalestudy.engines.tensorflow.traits import TensorFlowTraits
from scalestudy.features.check import topology
from scalestudy.features.check.plan import check_here
from scalestudy.features.check.report import TOPICS, AllReduce, Report, failed, passed, warned
from scalestudy.features.check.topology import Node, NodeBandwidth, measure, time_all_reduces
from scalestudy.hardware import cores
from scalestudy.hardware.devices import Gpu
from scalestudy.measure.bandwidth import SIZES
from scalestudy.study.engines import DEFAULT, engine_traits
from scalestudy.util.errors import RunError, UserError


def cpu_node(count):
    granted = cores.granted()
    return Node("n1", (), tuple(granted[n % len(granted)] for n in range(count)))


def gpu_node(count):
    return Node("n1", tuple(Gpu(n, f"GPU-{n}", "", "") for n in range(count)), ())


def timing(name, size, ranks=2):
    return AllReduce(
        collective=name, ranks=ranks, bytes=size, seconds=1.0, algorithm_bandwidth=size, bus_bandwidth=size
    )


@pytest.mark.parametrize("printed", ["[]", "[[null]]"], ids=["a build without CUDA", "instances"])
def test_gpus_that_the_framework_does_not_list_are_counted(monkeypatch, printed):
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, f"{printed}\n", "")
    )
    with pytest.raises(RunError, match=r"between 2 GPUs.*Received \d that.*--no-measure"):
        measure(gpu_node(2))


@pytest.mark.parametrize("has_tensorflow", [True, False])
def test_all_reduces_are_measured_where_there_is_a_framework(monkeypatch, has_tensorflow):
    shown, row = [], timing("ring", 1024)
    monkeypatch.setattr(topology, "between_gpus", lambda gpus: ((None, 1e9), (1e9, None)))
    monkeypatch.setattr(topology, "time_all_reduces", lambda node: ((row,), ("a note",)))
    missing = None if has_tensorflow else UserError("it", "none", "Install it.")
    monkeypatch.setattr(TensorFlowTraits, "missing_software", lambda self: missing)
    found = measure(gpu_node(2), shown.append)
    assert found.copies is not None and len(shown) == 1 + has_tensorflow
    assert found.all_reduces == ((row,) if has_tensorflow else ())
    assert len(found.notes) == 1


def test_one_unit_alone_has_no_links():
    found = measure(cpu_node(1))
    assert found == NodeBandwidth(notes=found.notes) and len(found.notes) == 1


@pytest.fixture
def checked(monkeypatch):
    """A check with real processes that only look at their cores, and timings that it is said to have made."""
    seen = {}

    def check(folder, plan):
        only_cores = tuple(topic for topic in TOPICS if topic != "cores")
        seen["plan"], seen["report"] = plan, check_here(folder, plan.model_copy(update={"skip": only_cores}))
        lines = (
            failed("collectives", "n1", "auto stalled", "Look."),
            warned("devices", "n1", "no question of sums", "None."),
            passed("collectives", "n1", "ring over 2 ranks"),
        )
        return Report(lines=lines, bandwidth=[timing("ring", size, plan.workers) for size in plan.sizes])

    monkeypatch.setattr(topology, "check_here", check)
    return seen


@pytest.mark.skipif(len(cores.granted()) < 2, reason="one core alone has none to combine with")
def test_a_process_for_each_core_sums_on_its_core_and_what_failed_is_noted(checked):
    before = os.sched_getaffinity(0)
    timings, notes = time_all_reduces(cpu_node(2))
    (line,) = [line for line in checked["report"].lines if line.topic == "cores"]
    assert (line.status, line.seen) == ("pass", "2 cores granted, 2 x 1 asked for")
    assert (checked["plan"].workers, checked["plan"].device) == (2, "cpu")
    assert checked["plan"].wants("collectives") and checked["plan"].wants("bandwidth")
    assert os.sched_getaffinity(0) == before
    assert sorted(row.bytes for row in timings) == list(SIZES)
    assert notes == ("collectives, n1: auto stalled. Look.",)


@pytest.mark.engine
def test_the_frameworks_copies_are_measured_between_each_two_devices():
    command = [sys.executable, "-m", engine_traits(DEFAULT).pairs_module, "cpu", "65536"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout.splitlines()[-1])
    assert [[value is None for value in row] for row in rows] == [[True, False], [False, True]]
    assert all(value > 0 for row in rows for value in row if value is not None)
