"""A submission whose answer was lost: its job is found, or known not to be, and never submitted twice."""

import time

import pytest

from scalestudy.launch.queue.jobs import find_strays
from scalestudy.launch.queue.submit import Submission, next_submission
from scalestudy.launch.slurm import SlurmSilent
from scalestudy.launch.status import look
from scalestudy.study.owner import Owner
from scalestudy.study.records import JobRecord
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.store import StudyFolder

DIGITS = "fedcba9876543210"
POINT = "native-w1-s1"
SILENT = 'echo "error: Unable to contact slurm controller" >&2; exit 1'
KNOWN = f"""if [[ $* == *-j* ]]; then echo "77_1|RUNNING|n1||None"
else echo "77_1|77|PENDING|s|of a site scalestudy:0123456789abcdef:{DIGITS}"; fi"""


@pytest.fixture
def run(folder: StudyFolder) -> RunFolder:
    """The run of task 1 of an array that Slurm may have taken or not; who submitted it has gone."""
    run = folder.new_run(next(each for each in folder.points() if each.name == POINT))
    run.write_owner(Owner(pid=1, host="elsewhere", started="", written=0.0))
    run.write_job(
        JobRecord(job="", submission=DIGITS, task=1, submitted=time.time(), site="here", script="x.sh")
    )
    return run


def test_it_waits_in_the_queue_as_long_as_nobody_says_otherwise(folder, run, programs) -> None:
    programs(squeue=SILENT)
    assert look(folder).of(POINT).state == "queued"
    with pytest.raises(SlurmSilent):
        look(folder, must=True)


def test_its_job_is_found_by_its_mark(folder, run, programs) -> None:
    programs(squeue=KNOWN)
    found = look(folder).of(POINT)
    assert found.state == "running" and found.job and found.job.job == "77_1"
    assert run.job().job == "77_1"
    assert find_strays(folder) == []


def test_what_was_never_taken_has_failed_and_is_submitted_anew(folder, run, programs) -> None:
    programs(squeue="")
    found = look(folder).of(POINT)
    assert found.state == "failed" and "Slurm never took its job" in found.reason
    assert next_submission(found, limit=3) == Submission(2)


def test_a_run_that_would_go_on_still_does(folder, run, programs) -> None:
    run.checkpoint.touch()
    programs(squeue="")
    assert next_submission(look(folder).of(POINT), limit=3) == Submission(2, run)


def test_nobody_asks_while_it_is_being_submitted(folder, run, programs) -> None:
    run.write_owner()
    asked = programs(squeue="exit 1")
    assert look(folder).of(POINT).state == "queued"
    assert asked() == []


def test_a_job_that_has_begun_is_known_by_what_it_left(folder, run, programs) -> None:
    (run.path / "began").write_text("0000000000000000 12\n")
    assert run.job().job == ""
    (run.path / "began").write_text(f"{DIGITS} 77_1\n")
    assert run.job().job == "77_1"
    (run.path / "began").write_text(f"{DIGITS} none\n")  # by hand, and in no job
    assert run.job().job == ""
