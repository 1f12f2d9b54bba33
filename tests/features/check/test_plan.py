"""A plan, and a whole check with real processes on this machine."""

import contextlib
import os
import threading
import time

import psutil
import pytest

from scalestudy.features.check.job import check_point
from scalestudy.features.check.plan import (
    Plan,
    WritableFolder,
    check_here,
    libraries_of,
    needs_of,
    read_report,
    write_plan,
)
from scalestudy.features.check.report import TOPICS
from scalestudy.launch.local import reserve
from scalestudy.launch.local.workers import WorkerProcesses, worker_command
from scalestudy.study import strategies
from scalestudy.study.strategies import Traits
from scalestudy.util.errors import RunError


def points(*names):
    return [check_point(None, 2).on(implementation=name) for name in names]


def test_needs_are_what_processes_meet_by_each_once():
    assert needs_of(points("single", "multiworker", "horovod", "multiworker")) == ("auto", "horovod")
    assert needs_of(points("single", "mirrored", "virtual")) == ()


def test_libraries_are_those_beside_the_engine():
    assert libraries_of(points("multiworker", "horovod", "horovod")) == ("horovod",)


def test_a_strategy_of_another_package_brings_its_library(monkeypatch):
    mine = Traits(
        "mine", "a strategy of another package", "tensorflow", processes="per-worker", library="mpi4py"
    )
    monkeypatch.setitem(strategies.REGISTRY._loaded, "mine", mine)
    assert libraries_of(points("mine")) == ("mpi4py",) and needs_of(points("mine")) == ()


QUICK = tuple(topic for topic in TOPICS if topic in ("versions", "builds", "collectives", "bandwidth"))


def statuses(report, topic):
    return [line.status for line in report.lines if line.topic == topic]


def left_behind(folder):
    """Processes that have to do with a folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(folder) in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_two_processes_look_at_this_machine_and_reach_each_other(tmp_path):
    (tmp_path / "file").touch()
    folders = (
        WritableFolder(path=str(tmp_path), purpose="results"),
        WritableFolder(path=str(tmp_path / "file" / "x"), purpose="cache"),
    )
    report = check_here(tmp_path / "check", Plan(workers=2, folders=folders, skip=QUICK))
    for topic in ("ranks", "ports", "devices"):
        assert statuses(report, topic) == ["pass"], report.lines
    assert statuses(report, "folders") == ["pass", "fail", "pass"] and report.failed
    assert read_report(tmp_path / "check") == report
    assert left_behind(tmp_path) == []


def test_one_process_has_nobody_to_reach(tmp_path):
    report = check_here(tmp_path / "check", Plan(workers=1, skip=QUICK))
    assert statuses(report, "ports") == [] and not report.failed


def test_a_rank_that_never_starts_is_named_within_the_limit(tmp_path):
    plan = Plan(workers=2, skip=(*QUICK, "cores"), start_limit=0.2)
    write_plan(tmp_path, plan)
    with reserve.ports(4) as port:
        command = worker_command(tmp_path, 0, 2, port, [], os.environ, tmp_path / "logs" / "rank-0.log")
        with WorkerProcesses([command]) as workers:
            deadline = time.monotonic() + 600
            while workers.running() and time.monotonic() < deadline:
                threading.Event().wait(0.1)
    (line,) = [line for line in read_report(tmp_path).lines if line.topic == "ranks"]
    assert line.status == "fail" and "rank 1 did not appear within 0.2 s" in line.seen


def test_ranks_that_die_leave_an_error_with_their_last_words(tmp_path, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    (tmp_path / "ranks").write_text("a file in place of the folder that ranks write to")
    with pytest.raises(RunError, match=r"rank-0\.log"):
        check_here(tmp_path, Plan(workers=2, skip=QUICK))
    assert left_behind(tmp_path) == []


@pytest.mark.engine
def test_each_collective_works_and_is_timed(tmp_path):
    sizes = (1024, 65536)
    report = check_here(tmp_path / "check", Plan(workers=2, sizes=sizes, limit=120))
    assert not report.failed, report.lines
    names = {row.collective for row in report.bandwidth}
    assert {"ring", "auto"} <= names
    assert {row.bytes for row in report.bandwidth} == set(sizes)
    for row in report.bandwidth:
        assert row.bus_bandwidth == pytest.approx(row.bytes / row.seconds)  # n = 2: the factor is 1
    assert len(statuses(report, "collectives")) == len(names)
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_a_rank_that_stops_answering_is_named(tmp_path):
    """The rank itself is stopped, before rank 0 asks it anything."""
    folder = tmp_path / "check"
    write_plan(folder, Plan(workers=2, connect_limit=0.5, slack=0.5, skip=(*QUICK, "cores")))
    with reserve.ports(4) as port:
        first, second = (
            worker_command(folder, rank, 2, port, [], os.environ, folder / "logs" / f"rank-{rank}.log")
            for rank in range(2)
        )
        with WorkerProcesses([second]) as stopped:
            while not (folder / "ranks" / "1.json").exists():
                assert stopped.running()
                time.sleep(0.02)
            for process in left_behind(folder):
                process.suspend()
            with WorkerProcesses([first]) as workers:
                while workers.running():
                    time.sleep(0.02)
    lines = read_report(folder).lines
    assert any("rank 1 has stopped answering" in line.seen for line in lines), lines
    assert left_behind(tmp_path) == []
