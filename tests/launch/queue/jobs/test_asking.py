"""A queue is asked seldom, without being waited for, and what it leaves unanswered is told."""

import threading
import time
from types import SimpleNamespace

import pytest

from scalestudy.launch.queue.base import JobView, QueueSilent
from scalestudy.launch.queue.polling import Asking
from scalestudy.launch.slurm import SLURM
from scalestudy.launch.status import look
from scalestudy.study.records import JobRecord

VIEW = JobView(job="7", state="RUNNING", nodes="n1")


class Queue(SimpleNamespace):
    """A queue that answers once it may."""

    def __init__(self) -> None:
        super().__init__(name="made", asked=0, may=threading.Event(), error=None)

    def ask(self, jobs, *, cluster=""):
        self.asked += 1
        self.may.wait()
        if self.error:
            raise self.error
        return dict.fromkeys(jobs, VIEW)


def test_it_is_asked_again_only_after_a_while():
    queue, asking = Queue(), Asking(wait=60.0)
    queue.may.set()
    for now in (100.0, 105.0, 109.9):
        assert asking.poll(queue, ["7"], now=now).jobs == {"7": VIEW}
    assert queue.asked == 1
    asking.poll(queue, ["7"], now=110.1)
    assert queue.asked == 2


def test_one_that_hangs_is_told_and_not_waited_for():
    queue, asking = Queue(), Asking()
    assert asking.poll(queue, ["7"], now=100.0).error == ""
    found = asking.poll(queue, ["7"], now=125.0)
    assert (found.jobs, found.error, queue.asked) == ({}, "no answer for 25 s", 1)
    queue.may.set()
    asking._under_way["made"].join()
    assert asking.poll(queue, ["7"], now=126.0).jobs == {"7": VIEW}


def test_one_that_is_silent_keeps_its_last_answer():
    queue, asking = Queue(), Asking(wait=60.0)
    queue.may.set()
    asking.poll(queue, ["7"], now=100.0)
    queue.error = QueueSilent("an answer", "none", "Wait.")
    queue.error.reason = "slurmctld is down"
    found = asking.poll(queue, ["7"], now=120.0)
    assert (found.jobs, found.error) == ({"7": VIEW}, "slurmctld is down")


def test_without_jobs_nobody_is_asked():
    queue = Queue()
    assert Asking().poll(queue, [], now=1.0).jobs == {} and queue.asked == 0


def test_a_look_by_it_writes_nothing_to_the_folder(folder, monkeypatch: pytest.MonkeyPatch):
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))
    monkeypatch.setattr(
        type(SLURM.queue), "ask", lambda self, jobs, cluster="": {"7": JobView(job="7", state="NODE_FAIL")}
    )
    before = {file: file.stat().st_mtime_ns for file in folder.path.rglob("*")}
    assert look(folder, asking=Asking(wait=60.0)).points[0].state == "failed"
    assert {file: file.stat().st_mtime_ns for file in folder.path.rglob("*")} == before
