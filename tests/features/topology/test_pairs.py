"""Bytes really moved between pinned processes."""

import json
import os
import subprocess
import sys

import psutil
import pytest

from scalestudy.errors import RunError
from scalestudy.features.topology.pairs import between_cpus, measure_pairs
from scalestudy.features.topology.units import Topology, Unit

CPUS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
pytestmark = pytest.mark.skipif(not CPUS, reason="this system pins no processes")


def test_every_ordered_pair_is_measured_and_the_diagonal_is_not():
    seen = []
    found = between_cpus([CPUS[0], CPUS[-1], CPUS[0]], lambda *at: seen.append(at), size=1 << 20)
    assert [[value is None for value in row] for row in found] == [
        [column == row for column in range(3)] for row in range(3)
    ]
    assert all(value > 0 for row in found for value in row if value is not None)
    assert seen == [(done, 6) for done in range(1, 7)]


def test_no_process_is_left_behind():
    between_cpus([CPUS[0], CPUS[-1]], size=1000)
    assert psutil.Process().children() == []


def test_a_cpu_that_is_not_there_is_named():
    with pytest.raises(RunError, match="CPU 9999"):
        between_cpus([CPUS[0], 9999], size=1000)
    assert psutil.Process().children() == []


@pytest.mark.parametrize("told", ["[]", "[[null]]"], ids=["a build without CUDA", "instances"])
def test_gpus_that_the_framework_does_not_list_are_counted(monkeypatch, told):
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, f"{told}\n", "")
    )
    gpus = Topology("gpu", tuple(Unit(f"GPU {n}", "", (), (), f"GPU-{n}") for n in range(2)), ())
    with pytest.raises(RunError, match=r"list 2 GPUs.*Received \d\. .*--no-measure"):
        measure_pairs(gpus)


@pytest.mark.engine
def test_the_frameworks_copies_are_measured_between_each_two_devices():
    command = [sys.executable, "-m", "scalestudy.strategies.device_pairs", "cpu", "65536"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout.splitlines()[-1])
    assert [[value is None for value in row] for row in rows] == [[True, False], [False, True]]
    assert all(value > 0 for row in rows for value in row if value is not None)
