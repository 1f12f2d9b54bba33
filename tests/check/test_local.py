"""A whole check with real processes on this machine, and what comes of one that stalls or is not there."""

import contextlib
import os
import threading
import time

import psutil
import pytest

from scalestudy.check.line import TOPICS
from scalestudy.check.local import check_here, read_report, write_plan
from scalestudy.check.plan import Folder, Plan
from scalestudy.errors import RunError
from scalestudy.launch.local import reserve
from scalestudy.launch.local.run import worker_command
from scalestudy.launch.local.workers import Workers

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
        Folder(path=str(tmp_path), purpose="results"),
        Folder(path=str(tmp_path / "file" / "x"), purpose="cache"),
    )
    report = check_here(tmp_path / "check", Plan(workers=2, folders=folders, skip=QUICK))
    for topic in ("ranks", "names", "ports", "clocks", "proxies", "devices"):
        assert statuses(report, topic) == ["pass"], report.lines
    assert statuses(report, "folders") == ["pass", "fail", "pass"] and report.failed
    assert read_report(tmp_path / "check") == report
    assert left_behind(tmp_path) == []


def test_one_process_has_nobody_to_reach(tmp_path):
    report = check_here(tmp_path / "check", Plan(workers=1, skip=QUICK))
    assert statuses(report, "ports") == [] and not report.failed


def test_a_rank_that_never_starts_is_named_within_the_limit(tmp_path):
    plan = Plan(workers=2, skip=(*QUICK, "cores"), start_limit=3)
    write_plan(tmp_path, plan)
    with reserve.ports(4) as port:
        command = worker_command(tmp_path, 0, 2, port, [], os.environ, tmp_path / "logs" / "rank-0.log")
        with Workers([command]) as workers:
            deadline = time.monotonic() + 120
            while workers.running() and time.monotonic() < deadline:
                threading.Event().wait(0.1)
    (line,) = [line for line in read_report(tmp_path).lines if line.topic == "ranks"]
    assert line.status == "fail" and "rank 1 did not appear within 3 s" in line.seen


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
    names = {row.implementation for row in report.bandwidth}
    assert {"ring", "auto"} <= names
    assert {row.bytes for row in report.bandwidth} == set(sizes)
    for row in report.bandwidth:
        assert row.bus_bandwidth == pytest.approx(row.bytes / row.seconds)  # n = 2: the factor is 1
    assert len(statuses(report, "collectives")) == len(names)
    assert left_behind(tmp_path) == []


class Stopper(threading.Thread):
    """Stops one rank's collectives of an implementation as soon as they appear: a real stall."""

    def __init__(self, folder, rank, implementation):
        super().__init__(daemon=True)
        self.folder, self.rank, self.implementation = folder, rank, implementation
        self.stopped = []
        self.over = threading.Event()

    def run(self):
        wanted = f'"implementation": "{self.implementation}"', f"-{self.rank}.jsonl", str(self.folder)
        while not self.over.wait(0.02):
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    words = " ".join(process.cmdline())
                    if process.pid not in self.stopped and all(part in words for part in wanted):
                        process.suspend()
                        self.stopped.append(process.pid)


@pytest.mark.engine
def test_a_stalled_collective_is_ended_and_the_pair_and_the_fallback_are_named(tmp_path):
    stopper = Stopper(tmp_path, 2, "auto")
    stopper.start()
    try:
        report = check_here(tmp_path / "check", Plan(workers=3, sizes=(1024,), limit=10, needs=("auto",)))
    finally:
        stopper.over.set()
        stopper.join()
    (line,) = [line for line in report.lines if line.topic == "collectives" and line.status != "pass"]
    assert line.status == "fail" and line.seen == "auto stalled at joining"
    assert line.where in (
        "localhost (rank 0) and localhost (rank 2)",
        "localhost (rank 1) and localhost (rank 2)",
    )
    assert 'communication = "ring"' in line.action
    assert "ring" in {row.implementation for row in report.bandwidth}
    assert len(stopper.stopped) >= 2  # in the whole group, and again in the trials of parts
    assert left_behind(tmp_path) == []


@pytest.mark.engine
def test_a_rank_that_stops_answering_is_named(tmp_path):
    """The rank itself is stopped, not its collective."""
    folder = tmp_path / "check"
    stopped = []

    def stop():
        if not stopped and (folder / "ranks" / "1.json").exists():
            for process in left_behind(folder):
                with contextlib.suppress(psutil.Error):
                    environment = process.environ()
                    if environment.get("RANK") == "1" and "scalestudy.worker" in process.cmdline():
                        process.suspend()
                        stopped.append(process.pid)

    skip = ("versions", "collectives", "bandwidth")
    report = check_here(folder, Plan(workers=2, start_limit=20, skip=skip), waiting=stop)
    assert stopped
    assert any("rank 1 has stopped answering" in line.seen for line in report.lines), report.lines
    assert left_behind(tmp_path) == []
