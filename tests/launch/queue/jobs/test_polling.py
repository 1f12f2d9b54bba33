import os
import stat
from pathlib import Path

import pytest

from scalestudy.launch.queue.base import JobView
from scalestudy.launch.queue.polling import (
    LONGEST,
    SHORTEST,
    Answers,
    answered,
    answers_file,
    due,
    forget,
    load,
    poll,
    unanswered,
)
from scalestudy.launch.slurm import SLURM, SlurmSilent

PENDING = {"1": JobView(job="1", state="PENDING", reason="Priority")}
RUNNING = {"1": JobView(job="1", state="RUNNING", nodes="node1")}
OVER = {"1": JobView(job="1", state="TIMEOUT", nodes="node1")}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A squeue that says this, on a machine without accounting; how often it was asked is counted."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def say(squeue: str) -> None:
        for name, body in {"squeue": squeue, "sacct": "exit 1", "scontrol": "exit 1"}.items():
            file = programs / name
            file.write_text(f"#!/bin/bash\necho {name} >> {tmp_path}/asked\n{body}\n")
            file.chmod(file.stat().st_mode | stat.S_IXUSR)

    say.asked = lambda: (tmp_path / "asked").read_text().split().count("squeue")  # type: ignore[attr-defined]
    return say


def test_the_interval_grows_while_nothing_changes_and_shrinks_when_something_does() -> None:
    queue, intervals = answered(Answers(), PENDING, now=0), []
    for now in range(1, 12):
        queue = answered(queue, PENDING, now=now)
        intervals.append(queue.interval)
    assert intervals == sorted(intervals) and intervals[0] > SHORTEST and intervals[-1] == LONGEST
    assert answered(queue, RUNNING, now=20).interval == SHORTEST


def test_nobody_asks_within_the_interval() -> None:
    queue = answered(Answers(), PENDING, now=100).model_copy(update={"interval": 10.0})
    assert not due(queue, ["1"], now=109)
    assert due(queue, ["1"], now=110)


def test_a_new_job_or_one_whose_files_show_its_end_is_asked_about_soon() -> None:
    queue = answered(Answers(), RUNNING, now=100).model_copy(update={"interval": 60.0})
    assert due(queue, ["1", "2"], now=100 + SHORTEST)
    assert due(queue, ["1"], now=100 + SHORTEST, over=["1"])
    assert not due(queue, ["1"], now=100.5, over=["1"])


def test_a_job_put_back_into_the_queue_is_in_no_hurry() -> None:
    queue = answered(Answers(), PENDING, now=100).model_copy(update={"interval": 60.0})
    assert not due(queue, ["1"], now=100 + SHORTEST, over=["1"])


def test_a_clock_that_was_set_back_keeps_nobody_from_asking() -> None:
    assert due(answered(Answers(), PENDING, now=1000), ["1"], now=10)


def test_the_end_of_a_job_keeps_the_time_of_the_answer_that_said_so_first() -> None:
    queue = answered(answered(Answers(), OVER, now=5), OVER, now=9)
    assert queue.ended == {"1": 5}
    assert answered(queue, RUNNING, now=12).ended == {}


def test_without_an_answer_the_last_one_stays_and_the_interval_doubles() -> None:
    queue = unanswered(answered(Answers(), PENDING, now=5), "none within 20 s", now=9)
    assert (queue.asked, queue.tried, queue.jobs, queue.error) == (5, 9, PENDING, "none within 20 s")
    assert queue.interval == 2 * SHORTEST
    for now in range(10):
        queue = unanswered(queue, "none", now=now)
    assert queue.interval == LONGEST
    assert not due(queue, ["1", "new"], now=now + LONGEST - 1)


def test_an_answer_is_kept_in_the_folder_and_serves_the_next_one_who_asks(slurm, tmp_path: Path) -> None:
    slurm("echo '1|PENDING||N/A|Priority'")
    assert poll(tmp_path, SLURM.queue, ["1"], now=100).jobs == PENDING
    assert poll(tmp_path, SLURM.queue, ["1"], now=101).jobs == PENDING
    assert slurm.asked() == 1
    poll(tmp_path, SLURM.queue, ["1"], now=101, must=True)
    assert slurm.asked() == 2
    forget(tmp_path)
    assert load(tmp_path, "slurm") == Answers()


def test_a_silent_slurm_leaves_the_last_answer_with_its_age(slurm, tmp_path: Path) -> None:
    slurm("echo '1|PENDING||N/A|Priority'")
    poll(tmp_path, SLURM.queue, ["1"], now=100)
    slurm("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    queue = poll(tmp_path, SLURM.queue, ["1"], now=200)
    assert queue.jobs == PENDING and queue.asked == 100 and "Unable to contact" in queue.error
    with pytest.raises(SlurmSilent):
        poll(tmp_path, SLURM.queue, ["1"], now=300, must=True)


def test_without_accounting_and_memory_a_job_is_unknown(slurm, tmp_path: Path) -> None:
    slurm("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    queue = poll(tmp_path, SLURM.queue, ["1"], now=100)
    assert queue.jobs["1"].state == "UNKNOWN" and queue.ended == {"1": 100}


def test_nobody_is_asked_about_nothing(tmp_path: Path) -> None:
    assert poll(tmp_path, SLURM.queue, [], now=100) == Answers()
    assert not answers_file(tmp_path, "slurm").exists()


@pytest.mark.parametrize("text", ["", "{", '{"tried": "soon"}', '{"tried": "NaN"}'])
def test_a_damaged_answer_is_none(tmp_path: Path, text: str) -> None:
    answers_file(tmp_path, "slurm").write_text(text)
    assert load(tmp_path, "slurm") == Answers()
