import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.launch.queue.base import ENDED, RUNNING, UNKNOWN, WAITING, JobView
from scalestudy.launch.status import FILES_LATE, Derived, derive
from scalestudy.study.records import Failure, Progress
from scalestudy.study.state import RunFiles

NOW = 1_000_000.0
FAILURE = Failure(rank=None, exit_code=1, reason="it failed")


def progress(age: float) -> Progress:
    return Progress(phase="training", epoch=1, epochs=2, step=1, steps=2, updated=NOW - age)


def state(files: RunFiles, slurm: str | None, *, age: float = 0.0, ended: float | None = None) -> Derived:
    view = JobView(job="1", state=slurm) if slurm else None
    return derive(files, view, now=NOW, asked=NOW - age, ended=None if ended is None else NOW - ended)


@pytest.mark.parametrize("slurm", [None, "PENDING", "RUNNING", "TIMEOUT", UNKNOWN])
def test_a_result_is_done_whatever_slurm_says(slurm: str | None) -> None:
    assert state(RunFiles(result=True), slurm) == Derived("done")


@pytest.mark.parametrize(
    ("slurm", "expected"),
    [
        ("PENDING", "queued"),
        ("REQUEUED", "queued"),
        ("RUNNING", "running"),
        ("COMPLETING", "running"),
        ("SUSPENDED", "running"),
    ],
)
def test_a_job_that_lives_is_as_slurm_says(slurm: str, expected: str) -> None:
    assert state(RunFiles(), slurm) == Derived(expected)  # type: ignore[arg-type]


def test_progress_that_is_younger_than_slurms_word_shows_that_it_runs() -> None:
    assert state(RunFiles(progress=progress(1)), "PENDING", age=30).state == "running"


def test_progress_of_before_it_was_put_back_into_the_queue_does_not() -> None:
    assert state(RunFiles(progress=progress(30)), "PENDING", age=1).state == "queued"


def test_a_run_put_back_into_the_queue_is_not_failed_any_more() -> None:
    assert state(RunFiles(failure=FAILURE, exit_code=1), "PENDING") == Derived("queued", revived=True)
    assert state(RunFiles(failure=FAILURE), "RUNNING") == Derived("running", revived=True)


def test_an_exit_code_of_before_it_was_put_back_into_the_queue_means_nothing() -> None:
    assert state(RunFiles(exit_code=143), "PENDING") == Derived("queued")


def test_a_job_that_a_person_ended_is_cancelled() -> None:
    assert state(RunFiles(progress=progress(1)), "CANCELLED", ended=0) == Derived("cancelled", over=True)
    written = FAILURE.model_copy(update={"cancelled": True})
    assert state(RunFiles(failure=written), "CANCELLED") == Derived("cancelled")
    assert state(RunFiles(failure=written), None) == Derived("cancelled")


@pytest.mark.parametrize("slurm", sorted(ENDED - {"COMPLETED", "CANCELLED"}))
def test_a_job_that_is_over_without_a_result_has_failed(slurm: str) -> None:
    assert state(RunFiles(progress=progress(1)), slurm, ended=0) == Derived("failed", over=True)


def test_a_failure_is_written_down_once() -> None:
    assert state(RunFiles(failure=FAILURE), "TIMEOUT") == Derived("failed")


def test_a_slow_file_system_may_show_the_result_later() -> None:
    assert state(RunFiles(exit_code=0), "COMPLETED", ended=FILES_LATE - 1).state == "running"
    assert state(RunFiles(exit_code=0), "COMPLETED", ended=FILES_LATE + 1) == Derived("failed", over=True)
    assert state(RunFiles(exit_code=3), "COMPLETED", ended=0) == Derived("failed", over=True)


def test_a_job_that_slurm_has_forgotten_has_failed_unless_it_is_seen_at_work() -> None:
    assert state(RunFiles(), UNKNOWN) == Derived("failed", over=True)
    assert state(RunFiles(progress=progress(600)), UNKNOWN) == Derived("failed", over=True)
    assert state(RunFiles(progress=progress(1)), UNKNOWN) == Derived("running")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (RunFiles(), "queued"),
        (RunFiles(progress=progress(1)), "running"),
        (RunFiles(progress=progress(600)), "queued"),
        (RunFiles(exit_code=3), "failed"),
        (RunFiles(exit_code=0), "failed"),
        (RunFiles(exit_code=0, checkpoint=True), "queued"),
        (RunFiles(failure=FAILURE, progress=progress(1)), "failed"),
    ],
)
def test_without_slurm_the_files_say_what_they_can_and_nothing_is_written(
    files: RunFiles, expected: str
) -> None:
    assert state(files, None) == Derived(expected)  # type: ignore[arg-type]


@given(
    files=st.builds(
        RunFiles,
        result=st.booleans(),
        failure=st.none() | st.just(FAILURE),
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
