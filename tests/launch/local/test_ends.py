"""How a run ended, from what its workers wrote and its launcher saw."""

import errno
import signal
import time
from pathlib import Path

import pytest

from scalestudy.launch.local.run import failure_of_end, gone, unable, write_down
from scalestudy.launch.local.workers import Workers
from scalestudy.machine.memory import oom_kills
from scalestudy.study.records import Cause, Failure
from scalestudy.study.run_folder import RunFolder


@pytest.fixture
def run(folder) -> RunFolder:
    return folder.new_run(folder.points()[0])


def test_what_a_worker_wrote_counts_before_what_was_seen_of_it(run):
    run.write_cause(Cause(rank=1, time=1.0, kind="sys.exit", exit_code=0, words="sys.exit(0)"))
    failure = failure_of_end(run, (1, 1), 2.0, None)
    assert failure.reason == "rank 1 ended with exit code 0: something ended the program by sys.exit(0)"


def test_the_rank_that_was_seen_to_end_first_is_not_blamed_for_another_one(run):
    run.write_cause(Cause(rank=1, time=1.0, kind="stopped", signal="SIGSTOP"))
    assert failure_of_end(run, (0, 1), 60.0, None).rank == 1


def test_a_rank_that_left_no_word_is_told_as_it_was_seen(run):
    run.write_cause(Cause(rank=0, time=5.1, kind="signal", signal="SIGTERM"))
    failure = failure_of_end(run, (1, -signal.SIGKILL), 5.0, oom_kills())
    assert failure.reason.startswith("rank 1 was ended by SIGKILL, but not by the kernel")
    run.log(1).write_text("last words\n")
    assert failure_of_end(run, (1, 3), 5.0, None).reason == "rank 1 ended with exit code 3: last words"


def test_workers_that_all_ended_well_without_a_result_have_failed(run):
    assert failure_of_end(run, None, 0.0, None).reason == "all workers ended, but there is no result"


def test_a_run_that_was_removed_is_told_as_that(run):
    (run.path / "point.json").unlink()
    assert gone(run)
    reason = failure_of_end(run, (0, 1), 0.0, None).reason
    assert reason == f"its folder was removed while it ran: {run.path}"


def test_a_folder_that_cannot_be_looked_at_is_not_gone(run, monkeypatch):
    def stale(path):
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr("scalestudy.launch.local.run.os.stat", stale)
    assert not gone(run)


def test_what_cannot_be_written_says_what_kept_it_from_that(run):
    failure = Failure(rank=0, exit_code=1, reason="x")
    assert write_down(run, failure) == "" and run.failure() == failure
    assert write_down(None, failure) == "it has no folder to say so"
    assert (
        write_down(RunFolder(run.path / "gone"), failure)
        == "its folder cannot say so (No such file or directory)"
    )


def test_what_could_not_be_started_names_the_file_and_the_reason():
    error = OSError(errno.ENOSPC, "No space left on device", "/a/b")
    assert unable(error).reason == "it could not be run: No space left on device: /a/b"


def test_the_moment_of_an_end_is_kept(tmp_path: Path):
    workers = Workers([])
    workers._ends[0] = time.monotonic() - 100
    assert workers.ended_at(0) == pytest.approx(time.time() - 100, abs=5)
