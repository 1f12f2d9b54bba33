"""Which runs a launcher resumes, and which it restarts."""

import errno
import os
import signal
from pathlib import Path
from unittest.mock import Mock

import pytest

from local_run import run_point
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.config.point import Point
from scalestudy.config.settings import ResolvedLaunch
from scalestudy.hardware.own_process import oom_kills
from scalestudy.launch.interrupted_runs import interrupted_run
from scalestudy.launch.launcher import Moved
from scalestudy.launch.run_failures import (
    failure_of_end,
    failure_to_start,
    record_failure,
    was_removed,
)
from scalestudy.launch.study_status import study_status
from scalestudy.store.records import Cause, Failure, Hang, Sign, Stopped
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder

TEXT = 'task = "cnn"\n[sweep]\nworkers = 1\nseed = 0\n'


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    study = parse_study(TEXT, Path("study.toml"))
    return StudyFolder.create_or_open(
        tmp_path / "results", study, expand(study, gpus=0, cores=8), TEXT
    )


@pytest.fixture
def point(folder: StudyFolder) -> Point:
    return folder.points()[0]


@pytest.fixture
def kept(folder: StudyFolder, point: Point) -> RunFolder:
    run = folder.new_run(point)
    run.checkpoint.touch()
    return run


def by_the_user() -> Failure:
    return Failure(rank=None, exit_code=None, reason="interrupted by the user")


@pytest.mark.parametrize(
    ("failure", "goes_on"),
    [
        (None, True),  # its launcher was killed
        ({"signal": "SIGKILL", "rank": 1}, True),
        ({"signal": "SIGSEGV", "rank": 1}, False),
        ({"exit_code": 1, "rank": 1}, False),
    ],
)
def test_only_a_run_that_was_ended_from_outside_goes_on(
    folder, point, kept, failure, goes_on
):
    if failure:
        kept.write_failure(
            Failure(**({"exit_code": None, "reason": "it ended"} | failure))
        )
    assert interrupted_run(folder, point) == (kept if goes_on else None)
    assert (kept.failure() is None) == (failure is None or goes_on)


@pytest.mark.parametrize("what", ["a newer run", "a queue's run"])
def test_neither_an_older_run_nor_one_of_a_queue_goes_on(folder, point, kept, what):
    if what == "a newer run":
        folder.new_run(point).write_failure(by_the_user())
    else:
        (kept.path / "job.json").touch()
    assert interrupted_run(folder, point) is None


def test_a_run_that_the_user_interrupted_goes_on_as_ours_and_as_if_nothing_had_been(
    folder, point, kept
):
    kept.write_failure(by_the_user())
    kept.ask_to_stop()
    kept.write_stopped(Stopped(epoch=1, step=2))
    kept.write_hang(Hang(rank=None, phase="step", epoch=1, step=2, seconds=120))
    point = point.on(launch=ResolvedLaunch(progress_timeout=900))
    kept.write_launcher_process(
        kept.launcher_process().model_copy(update={"pid": 1, "host": "elsewhere"})
    )
    assert interrupted_run(folder, point) == kept
    assert kept.launcher_process().pid == os.getpid()
    assert kept.failure() is None
    assert not kept.stop.exists() and kept.stopped() is None
    assert kept.hang() is None
    assert kept.point().launch.progress_timeout == 900
    assert study_status(folder).states[point.name] == "running"


def test_without_a_checkpoint_it_starts_anew(folder, point):
    assert interrupted_run(folder, point) is None
    folder.new_run(point).write_failure(by_the_user())
    assert interrupted_run(folder, point) is None


@pytest.mark.parametrize(
    "terms",
    [
        {"oversubscribed": "cores shared with another study"},
        {"launch": ResolvedLaunch(cpus_per_worker=2)},
    ],
)
def test_other_timing_conditions_make_another_run(folder, point, kept, terms):
    assert interrupted_run(folder, point.on(**terms)) is None


@pytest.mark.parametrize("failure", [None, by_the_user()])
def test_heartbeats_are_removed_once_a_run_is_done(folder, point, monkeypatch, failure):
    def attempt(run, processes, stop):
        run.write_sign(
            Sign(
                rank=0,
                host="here",
                pid=1,
                phase="step",
                marks=1,
                moved=1.0,
                due=60.0,
                written=1.0,
            )
        )
        yield Moved(point.name)
        return failure

    monkeypatch.setattr("scalestudy.launch.local_run._attempt", attempt)
    assert run_point(folder, point) == failure
    (run,) = folder.runs(point.name)
    assert bool(run.signs()) is (failure is not None)


@pytest.fixture
def run(folder) -> RunFolder:
    return folder.new_run(folder.points()[0])


def test_what_a_worker_wrote_counts_before_what_was_seen_of_it(run):
    run.write_cause(
        Cause(rank=1, time=1.0, kind="sys.exit", exit_code=0, words="sys.exit(0)")
    )
    failure = failure_of_end(run, (1, 1), 2.0, None)
    assert (
        failure.reason
        == "rank 1 ended with exit code 0: something ended the program by sys.exit(0)"
    )
    run.write_cause(Cause(rank=1, time=1.0, kind="stopped", signal="SIGSTOP"))
    assert failure_of_end(run, (0, 1), 60.0, None).rank == 1, (
        "not the one that was seen to end first"
    )


def test_a_rank_that_left_no_word_is_told_as_it_was_seen(run):
    run.write_cause(Cause(rank=0, time=5.1, kind="signal", signal="SIGTERM"))
    failure = failure_of_end(run, (1, -signal.SIGKILL), 5.0, oom_kills())
    assert failure.reason.startswith(
        "rank 1 was ended by SIGKILL, but not by the kernel"
    )
    run.log(1).write_text("last words\n")
    assert (
        failure_of_end(run, (1, 3), 5.0, None).reason
        == "rank 1 ended with exit code 3: last words"
    )


def test_workers_that_all_ended_well_without_a_result_have_failed(run):
    assert (
        failure_of_end(run, None, 0.0, None).reason
        == "all workers ended, but there is no result"
    )
    run.checkpoint.touch()
    run.ask_to_stop("rank 1 received SIGINT")
    assert (
        failure_of_end(run, None, 0.0, None).reason
        == "all workers ended, but there is no result"
    )
    run.write_stopped(Stopped(epoch=1, step=2))
    assert "(rank 1 received SIGINT)" in failure_of_end(run, None, 0.0, None).reason


def test_a_run_that_was_removed_is_told_as_that_and_one_that_cannot_be_looked_at_is_not(
    run, monkeypatch
):
    (run.path / "point.json").unlink()
    reason = failure_of_end(run, (0, 1), 0.0, None).reason
    assert reason == f"its folder was removed while it ran: {run.path}"
    stale = OSError(errno.ESTALE, "Stale file handle")
    monkeypatch.setattr(
        "scalestudy.launch.run_failures.os.stat", Mock(side_effect=stale)
    )
    assert not was_removed(run)


def test_what_cannot_be_written_says_what_kept_it_from_that(run):
    failure = Failure(rank=0, exit_code=1, reason="x")
    assert record_failure(run, failure) == "" and run.failure() == failure
    assert record_failure(None, failure) == "it has no folder to say so"
    assert (
        record_failure(RunFolder(run.path / "gone"), failure)
        == "its folder cannot say so (No such file or directory)"
    )


def test_what_could_not_be_started_names_the_file_and_the_reason():
    error = OSError(errno.ENOSPC, "No space left on device", "/a/b")
    assert (
        failure_to_start(error).reason
        == "it could not be run: No space left on device: /a/b"
    )
