"""The state of a study: known states are not read again, and those that only a queue knew are recorded."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.launch.launcher import launcher, queues
from scalestudy.launch.queue.scheduler import ENDED, RUNNING, UNKNOWN, WAITING, JobView
from scalestudy.launch.slurm import SLURM
from scalestudy.launch.study_status import FILES_LATE, Derived, derive, study_status
from scalestudy.store.records import Failure, JobRecord, Progress
from scalestudy.store.state import RunFiles
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError

FAILURE = Failure(rank=0, exit_code=1, reason="it failed")


def test_only_the_points_that_may_have_changed_are_read_again(folder: StudyFolder) -> None:
    first, second = folder.points()[:2]
    before = study_status(folder)
    folder.new_run(first).write_failure(FAILURE)
    folder.new_run(second).write_failure(FAILURE)
    after = study_status(folder, known=before, names=[first.name])
    assert after.of(first.name).state == "failed" and after.of(second.name).state == "missing"
    assert study_status(folder, known=after).of(second.name).state == "failed"


def test_a_run_that_is_at_work_decides_though_a_newer_one_failed(folder: StudyFolder) -> None:
    point = folder.points()[0]
    running = folder.new_run(point)
    folder.new_run(point).write_failure(FAILURE)
    found = study_status(folder).of(point.name)
    assert (found.state, found.run) == ("running", running)


def test_a_queue_that_is_asked_writes_the_end_down_for_whoever_has_none_to_ask(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))
    (run.path / ".secret").touch()
    view = JobView(job="7", state="NODE_FAIL", nodes="n1")
    monkeypatch.setattr(type(SLURM.queue), "ask", lambda self, jobs, cluster="": {"7": view})
    found = study_status(folder).of("native-w1-s0")
    assert (found.state, found.reason) == ("failed", "a node failed (n1)")
    assert run.failure() == found.failure
    assert not (run.path / ".secret").exists()


def test_what_a_queue_hides_of_another_users_job_is_never_written_down(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))
    unknown = {"7": JobView(job="7", state=UNKNOWN)}
    monkeypatch.setattr(type(SLURM.queue), "ask", lambda self, jobs, cluster="": unknown)
    with monkeypatch.context() as colleague:
        colleague.setattr("os.geteuid", lambda: (run.path / "job.json").stat().st_uid + 1)
        assert study_status(folder, must=True).of("native-w1-s0").state == "queued"
        run.write_job(JobRecord(job="", submission="1" * 16, submitted=1, site="here", script="x.sh"))
        colleague.setattr(type(SLURM.queue), "marked", lambda self: [])
        assert study_status(folder, must=True).of("native-w1-s0").state == "queued"
    assert run.failure() is None
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))
    assert study_status(folder, must=True).of("native-w1-s0").state == "failed"


def test_a_job_of_a_launcher_that_is_not_here_is_told_by_its_files(folder: StudyFolder) -> None:
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(queue="elsewhere", job="7", submitted=time.time(), site="here", script="x.sh"))
    assert study_status(folder).of("native-w1-s0").state == "queued"
    (run.path / "exit").write_text("3\n")
    assert study_status(folder).of("native-w1-s0").state == "failed"


def test_launchers_are_found_by_name(tmp_path: Path) -> None:
    assert queues() == ["slurm", "pbs"]
    assert not launcher("local").detached
    with pytest.raises(UserError, match="local, hosts, slurm, pbs"):
        launcher("cron")


def test_a_run_that_saves_its_model_is_running_in_that_phase(folder: StudyFolder) -> None:
    run = folder.new_run(folder.points()[0])
    run.write_launcher_process()
    run.model.write_text("saved")
    run.write_progress(Progress(phase="saving", epoch=2, epochs=2, step=1, steps=1, updated=time.time()))
    status = study_status(folder).of("native-w1-s0")
    assert (status.state, status.progress.phase, status.result) == ("running", "saving", None)


NOW = 1_000_000.0
STATE_FAILURE = Failure(rank=None, exit_code=1, reason="it failed")


def progress(age: float) -> Progress:
    return Progress(phase="training", epoch=1, epochs=2, step=1, steps=2, updated=NOW - age)


def state(files: RunFiles, slurm: str | None, *, age: float = 0.0, ended: float | None = None) -> Derived:
    view = JobView(job="1", state=slurm) if slurm else None
    return derive(files, view, now=NOW, asked=NOW - age, ended=None if ended is None else NOW - ended)


WRITTEN = STATE_FAILURE.model_copy(update={"cancelled": True})
OVER = Derived("failed", over=True)


@pytest.mark.parametrize(
    ("files", "slurm", "expected"),
    [
        *((RunFiles(result=True), slurm, Derived("done")) for slurm in (None, "PENDING", "RUNNING", UNKNOWN)),
        *((RunFiles(), slurm, Derived("queued")) for slurm in ("PENDING", "REQUEUED")),
        *((RunFiles(), slurm, Derived("running")) for slurm in ("RUNNING", "COMPLETING", "SUSPENDED")),
        # put back into the queue
        (RunFiles(failure=STATE_FAILURE, exit_code=1), "PENDING", Derived("queued", revived=True)),
        (RunFiles(failure=STATE_FAILURE), "RUNNING", Derived("running", revived=True)),
        (RunFiles(exit_code=143), "PENDING", Derived("queued")),
        # ended by a person
        (RunFiles(progress=progress(1)), "CANCELLED", Derived("cancelled", over=True)),
        (RunFiles(failure=WRITTEN), "CANCELLED", Derived("cancelled")),
        (RunFiles(failure=WRITTEN), None, Derived("cancelled")),
        # over without a result; a failure is written down once
        *((RunFiles(progress=progress(1)), end, OVER) for end in sorted(ENDED - {"COMPLETED", "CANCELLED"})),
        (RunFiles(exit_code=3), "COMPLETED", OVER),
        (RunFiles(failure=STATE_FAILURE), "TIMEOUT", Derived("failed")),
        # forgotten by Slurm: failed unless it is seen at work
        (RunFiles(), UNKNOWN, OVER),
        (RunFiles(progress=progress(600)), UNKNOWN, OVER),
        (RunFiles(progress=progress(1)), UNKNOWN, Derived("running")),
        # without Slurm, the files say what they can, and nothing is written
        (RunFiles(), None, Derived("queued")),
        (RunFiles(progress=progress(1)), None, Derived("running")),
        (RunFiles(progress=progress(600)), None, Derived("queued")),
        (RunFiles(exit_code=3), None, Derived("failed")),
        (RunFiles(exit_code=0), None, Derived("failed")),
        (RunFiles(exit_code=0, checkpoint=True), None, Derived("queued")),
        (RunFiles(failure=STATE_FAILURE, progress=progress(1)), None, Derived("failed")),
    ],
)
def test_a_state_follows_from_the_files_and_from_slurms_word(files, slurm, expected) -> None:
    assert state(files, slurm, ended=0) == expected


@pytest.mark.parametrize(("age", "asked", "expected"), [(1, 30, "running"), (30, 1, "queued")])
def test_only_progress_that_is_younger_than_slurms_word_shows_that_it_runs(age, asked, expected) -> None:
    assert state(RunFiles(progress=progress(age)), "PENDING", age=asked).state == expected


@pytest.mark.parametrize(
    ("ended", "expected"), [(FILES_LATE - 1, Derived("running")), (FILES_LATE + 1, OVER)]
)
def test_a_slow_file_system_may_show_the_result_later(ended, expected) -> None:
    assert state(RunFiles(exit_code=0), "COMPLETED", ended=ended) == expected


@given(
    files=st.builds(
        RunFiles,
        result=st.booleans(),
        failure=st.none() | st.just(STATE_FAILURE),
        progress=st.none() | st.builds(progress, st.floats(-100, 1000)),
        exit_code=st.none() | st.integers(0, 255),
        checkpoint=st.booleans(),
    ),
    slurm=st.none() | st.sampled_from([*sorted(WAITING | RUNNING | ENDED), UNKNOWN, "NEW_IN_SLURM_99"]),
    ended=st.none() | st.floats(0, 100),
)
def test_only_slurms_word_writes_a_failure_and_never_over_a_live_job(files, slurm, ended) -> None:
    derived = state(files, slurm, ended=ended)
    assert not derived.over or (
        derived.state in ("failed", "cancelled") and slurm not in WAITING | RUNNING | {None}
    )
    assert not derived.revived or derived.state in ("queued", "running")
    assert files.result == (derived.state == "done")
