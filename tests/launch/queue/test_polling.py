"""The queue is queried rarely and never waited for; missing answers are reported."""

import time
from pathlib import Path

import pytest

from scalestudy.launch.queue.queue_launcher import find_orphans
from scalestudy.launch.queue.scheduler import JobView, QueueUnreachable
from scalestudy.launch.queue.submission import Submission, next_submission
from scalestudy.launch.slurm import SLURM
from scalestudy.launch.study_status import (
    LONGEST,
    SHORTEST,
    Answers,
    answers_file,
    forget_answers,
    load,
    poll,
    study_status,
)
from scalestudy.store.launcher_process import LauncherProcess
from scalestudy.store.records import JobRecord
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder

PENDING = {"1": JobView(job="1", state="PENDING", reason="Priority")}
RUNNING = {"1": JobView(job="1", state="RUNNING", nodes="node1")}
OVER = {"1": JobView(job="1", state="TIMEOUT", nodes="node1")}


@pytest.fixture
def slurm(programs):
    """Let squeue answer this, without accounting; the returned function counts its calls."""

    def say(squeue: str):
        asked = programs(squeue=squeue, sacct="exit 1", scontrol="exit 1")
        return lambda: sum(call.startswith("squeue") for call in asked())

    return say


def test_the_interval_grows_while_nothing_changes_and_shrinks_when_something_does() -> None:
    queue, intervals = Answers().answered(PENDING, now=0), []
    for now in range(1, 12):
        queue = queue.answered(PENDING, now=now)
        intervals.append(queue.interval)
    assert intervals == sorted(intervals) and intervals[0] > SHORTEST and intervals[-1] == LONGEST
    assert queue.answered(RUNNING, now=20).interval == SHORTEST


@pytest.mark.parametrize(
    ("views", "interval", "now", "jobs", "over", "due"),
    [
        pytest.param(PENDING, 10.0, 109, ["1"], [], False, id="within the interval"),
        pytest.param(PENDING, 10.0, 110, ["1"], [], True, id="after it"),
        pytest.param(RUNNING, 60.0, 100 + SHORTEST, ["1", "2"], [], True, id="a new job"),
        pytest.param(RUNNING, 60.0, 100 + SHORTEST, ["1"], ["1"], True, id="over, by its files"),
        pytest.param(RUNNING, 60.0, 100.5, ["1"], ["1"], False, id="over, but just asked"),
        pytest.param(PENDING, 60.0, 100 + SHORTEST, ["1"], ["1"], False, id="put back into the queue"),
        pytest.param(PENDING, SHORTEST, 10, ["1"], [], True, id="a clock that was set back"),
    ],
)
def test_the_queue_is_asked_after_the_interval_and_soon_where_there_is_news(
    views, interval, now, jobs, over, due
) -> None:
    queue = Answers().answered(views, now=100).model_copy(update={"interval": interval})
    assert queue.due(jobs, now=now, over=over) is due


def test_the_end_of_a_job_keeps_the_time_of_the_answer_that_said_so_first() -> None:
    queue = Answers().answered(OVER, now=5).answered(OVER, now=9)
    assert queue.ended == {"1": 5}
    assert queue.answered(RUNNING, now=12).ended == {}


def test_without_an_answer_the_last_one_stays_and_the_interval_doubles() -> None:
    queue = Answers().answered(PENDING, now=5).unanswered("none within 20 s", now=9)
    assert (queue.asked, queue.tried, queue.jobs, queue.error) == (5, 9, PENDING, "none within 20 s")
    assert queue.interval == 2 * SHORTEST
    for now in range(10):
        queue = queue.unanswered("none", now=now)
    assert queue.interval == LONGEST
    assert not queue.due(["1", "new"], now=now + LONGEST - 1)


def test_an_answer_is_kept_in_the_folder_and_serves_the_next_one_who_asks(slurm, tmp_path: Path) -> None:
    asked = slurm("echo '1|PENDING||N/A|Priority'")
    assert poll(tmp_path, SLURM.queue, ["1"], now=100).jobs == PENDING
    assert poll(tmp_path, SLURM.queue, ["1"], now=101).jobs == PENDING
    assert asked() == 1
    poll(tmp_path, SLURM.queue, ["1"], now=101, must=True)
    assert asked() == 2
    forget_answers(tmp_path)
    assert load(tmp_path, "slurm") == Answers()


def test_a_silent_slurm_leaves_the_last_answer_with_its_age(slurm, tmp_path: Path) -> None:
    slurm("echo '1|PENDING||N/A|Priority'")
    poll(tmp_path, SLURM.queue, ["1"], now=100)
    slurm("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    queue = poll(tmp_path, SLURM.queue, ["1"], now=200)
    assert queue.jobs == PENDING and queue.asked == 100 and "Unable to contact" in queue.error
    with pytest.raises(QueueUnreachable):
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


DIGITS = "fedcba9876543210"
POINT = "native-w1-s1"
SILENT = 'echo "error: Unable to contact slurm controller" >&2; exit 1'
KNOWN = f"""if [[ $* == *-j* ]]; then echo "77|RUNNING|n1||None"
else echo "77|PENDING|s|of a site scalestudy:0123456789abcdef:{DIGITS}"; fi"""


@pytest.fixture
def run(folder: StudyFolder) -> RunFolder:
    """A run that Slurm may or may not have accepted; its submitting process has ended."""
    run = folder.new_run(next(each for each in folder.points() if each.name == POINT))
    run.write_launcher_process(LauncherProcess(pid=1, host="elsewhere", started="", written=0.0))
    run.write_job(JobRecord(job="", submission=DIGITS, submitted=time.time(), site="here", script="x.sh"))
    return run


def test_it_waits_in_the_queue_as_long_as_nobody_says_otherwise(folder, run, programs) -> None:
    programs(squeue=SILENT)
    assert study_status(folder).of(POINT).state == "queued"
    with pytest.raises(QueueUnreachable):
        study_status(folder, must=True)


def test_its_job_is_found_by_its_mark(folder, run, programs) -> None:
    programs(squeue=KNOWN)
    found = study_status(folder).of(POINT)
    assert found.state == "running" and found.job and found.job.job == "77"
    assert run.job().job == "77"
    assert find_orphans(folder, study_status(folder)) == []


def test_what_was_never_taken_has_failed_and_is_submitted_anew(folder, run, programs) -> None:
    programs(squeue="")
    found = study_status(folder).of(POINT)
    assert found.state == "failed" and "Slurm never took its job" in found.reason
    assert next_submission(found, limit=3) == Submission(2)


def test_a_run_that_would_go_on_still_does(folder, run, programs) -> None:
    run.checkpoint.touch()
    programs(squeue="")
    assert next_submission(study_status(folder).of(POINT), limit=3) == Submission(2, run)


def test_nobody_asks_while_it_is_being_submitted(folder, run, programs) -> None:
    run.write_launcher_process()
    asked = programs(squeue="exit 1")
    assert study_status(folder).of(POINT).state == "queued"
    assert asked() == []


def test_a_job_that_has_begun_is_known_by_what_it_left(folder, run, programs) -> None:
    (run.path / "began").write_text("0000000000000000 12\n")
    assert run.job().job == ""
    (run.path / "began").write_text(f"{DIGITS} 77\n")
    assert run.job().job == "77"
    (run.path / "began").write_text(f"{DIGITS} none\n")  # started by hand, outside of a job
    assert run.job().job == ""
