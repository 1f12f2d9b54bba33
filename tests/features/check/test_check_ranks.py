"""Checks with real processes on this machine, and one with stalling stand-ins for a framework.

tests/slurm/test_check.py has real collectives that stall because two nodes cannot connect.
"""

import contextlib
import json
import os
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.engines.tensorflow.traits import ENGINE, TensorFlowTraits
from scalestudy.features.check.check_files import CheckPlan, read_report, write_plan
from scalestudy.features.check.check_ranks import (
    check_here,
    check_rank,
    trial_environment,
    trial_task,
)
from scalestudy.features.check.check_report import TOPICS
from scalestudy.hardware.devices import Gpu
from scalestudy.launch import reserve
from scalestudy.plugins.engines import collective
from scalestudy.util.errors import RunError

QUICK = tuple(
    topic
    for topic in TOPICS
    if topic in ("versions", "builds", "collectives", "bandwidth")
)


def statuses(report, topic):
    return [line.status for line in report.lines if line.topic == topic]


def left_behind(folder):
    """Return the processes whose command line contains the folder."""
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if (
                str(folder) in " ".join(process.cmdline())
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                processes.append(process)
    return processes


@pytest.mark.slow
def test_two_processes_look_at_this_machine(tmp_path):
    (tmp_path / "file").touch()
    folders = {str(tmp_path): "results", str(tmp_path / "file" / "x"): "cache"}
    report = check_here(
        tmp_path / "check", CheckPlan(workers=2, folders=folders, skip=QUICK)
    )
    for topic in ("ranks", "devices"):
        assert statuses(report, topic) == ["pass"], report.lines
    assert statuses(report, "folders") == ["pass", "fail", "pass"] and report.failed
    assert read_report(tmp_path / "check") == report
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_ranks_that_die_leave_an_error_with_their_last_words(tmp_path, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    (tmp_path / "ranks").write_text("a file in place of the folder that ranks write to")
    with pytest.raises(RunError, match=r"rank-0\.log"):
        check_here(tmp_path, CheckPlan(workers=2, skip=QUICK))
    assert left_behind(tmp_path) == []


@pytest.mark.engine
def test_each_collective_works_and_is_timed(tmp_path):
    sizes = (1024, 65536)
    # A framework may take minutes to import on a busy machine.
    plan = CheckPlan(workers=2, sizes=sizes, start_limit=900, limit=600)
    report = check_here(tmp_path / "check", plan)
    assert not report.failed, report.lines
    names = {
        line.seen.partition(":")[0]
        for line in report.lines
        if line.topic == "bandwidth"
    }
    assert {"ring", "auto"} <= names
    assert len(statuses(report, "collectives")) == len(names)
    assert left_behind(tmp_path) == []


HOSTS = ("n1", "n1", "n2", "n2")


def placement(rank, source="slurm"):
    return Placement(rank, 4, rank % 2, 2, rank // 2, HOSTS, source, 20000)


def variables(name="ring", device="cpu", gpus=(), **changes):
    base = {
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy",
        "TF_CONFIG": "stale",
    } | changes
    tried = None if name == "build" else collective(name)
    return trial_environment(
        tried, ENGINE, placement(3), base, device=device, local_rank=1, gpus=gpus
    )


def test_proxies_are_unset_and_tf_config_names_the_workers_where_it_is_used():
    environment = variables()
    assert "HTTPS_PROXY" not in environment and environment["PATH"] == "/bin"
    assert json.loads(environment["TF_CONFIG"])["cluster"]["worker"][2:] == [
        "n2:20000",
        "n2:20001",
    ]
    assert "TF_CONFIG" not in variables("horovod-gloo")


@pytest.mark.parametrize(
    ("name", "device", "visible", "gpus", "shown"),
    [
        ("ring", "gpu", "", (), "1"),
        ("ring", "gpu", "4,5", (), "5"),
        ("ring", "gpu", "GPU-x", (), "GPU-x"),
        (
            "build",
            "gpu",
            "0,1",
            (),
            "0,1",
        ),  # the build is queried with all GPUs visible
        ("ring", "cpu", "0,1", (), "-1"),
        (
            "nccl",
            "gpu",
            "4,5",
            [Gpu(4, "GPU-a", "H100"), Gpu(5, "GPU-b", "H100")],
            "GPU-b",
        ),  # by UUID
    ],
)
def test_each_rank_takes_its_own_gpu(name, device, visible, gpus, shown):
    assert (
        variables(name, device, gpus, CUDA_VISIBLE_DEVICES=visible)[
            "CUDA_VISIBLE_DEVICES"
        ]
        == shown
    )


def test_only_horovod_by_mpi_meets_as_mpirun_says(tmp_path):
    def source(name):
        what = trial_task(
            collective(name),
            placement(0, "openmpi"),
            device="cpu",
            sizes=(),
            events=tmp_path,
        )
        return what["placement"]["source"]

    assert source("horovod-mpi") == "openmpi" and source("horovod-gloo") != "openmpi"


SIZE = 3
STAND_IN = """
import json, os, pathlib, signal, sys, time
errand = json.loads(sys.argv[1])
events = pathlib.Path(errand["events"])
number, own = events.stem.split("-")

def tell(**event):
    with open(events, "a") as file:
        file.write(json.dumps(event) + "\\n")

name = errand["collective"]
if name is None:
    flags = {"gloo": True, "mpi": False, "nccl": False}
    built = {"tensorflow": "2", "cuda": None, "gpus": 0, "horovod_error": None}
    tell(step="built", horovod=flags, seconds=0.0, **built)
    sys.exit()
meeting = events.parent / f"meeting-{number}"
meeting.mkdir(exist_ok=True)
if name == "auto" and own == "2":
    (events.parent / f"stalled-{number}").touch()
    os.kill(os.getpid(), signal.SIGSTOP)
(meeting / own).touch()
while len(list(meeting.iterdir())) < errand["placement"]["size"]:
    time.sleep(0.01)
tell(step="joined")
tell(step="summed")
for size in errand["sizes"]:
    tell(step="timed", bytes=size, seconds=1e-3)
tell(step="done")
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_collective_that_stalls_is_told_and_the_others_are_tried(
    tmp_path, monkeypatch
):
    """Rank 2 of three stalls in one collective."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(TensorFlowTraits, "trial_module", "stand_in")
    skip = tuple(topic for topic in TOPICS if topic not in ("collectives", "bandwidth"))
    folder = tmp_path / "check"
    write_plan(folder, CheckPlan(workers=SIZE, sizes=(1024,), limit=3, skip=skip))
    with reserve.ports(SIZE + 2) as port, ThreadPoolExecutor(SIZE) as pool:
        ranks = [
            Placement(
                rank, SIZE, rank, SIZE, 0, ("localhost",) * SIZE, "torchrun", port
            )
            for rank in range(SIZE)
        ]
        assert (
            list(pool.map(lambda placement: check_rank(folder, placement), ranks))
            == [0] * SIZE
        )
    report = read_report(folder)
    (line,) = [
        line
        for line in report.lines
        if line.topic == "collectives" and line.status != "pass"
    ]
    assert (line.status, line.where, line.seen) == (
        "fail",
        "localhost",
        "auto stalled at joining",
    )
    assert statuses(report, "bandwidth") == ["pass"] * 2
    assert len(list((tmp_path / "check" / "events").glob("stalled-*"))) == 1
    children = psutil.Process(os.getpid()).children(recursive=True)
    assert [child for child in children if "stand_in" in child.cmdline()] == []
