"""The state of a study: the queue is asked rarely, and what only a queue knew is recorded."""

import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.launch.derived_state import FILES_LATE, Derived, derive
from scalestudy.launch.job_view import ENDED, RUNNING, UNKNOWN, WAITING, JobView
from scalestudy.launch.point_run import PointRun, read_status
from scalestudy.launch.polling import (
    LONGEST,
    SHORTEST,
    Answers,
    answers_file,
    forget_answers,
    poll,
    read_answers,
)
from scalestudy.launch.queue.launchers import SLURM
from scalestudy.launch.queue.queue_launcher import Submission, next_submission
from scalestudy.launch.scheduler import QueueUnreachable
from scalestudy.launch.study_status import record_ends, study_status
from scalestudy.store.launcher_process import LauncherProcess
from scalestudy.store.records import Failure, JobRecord, Progress
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.state import RunFiles
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.files import contents
from synthetic_result import progress_of

FAILURE = Failure(rank=0, exit_code=1, reason="it failed")


def test_only_the_points_that_may_have_changed_are_read_again(
    folder: StudyFolder,
) -> None:
    first, second = folder.points()[:2]
    before = study_status(folder)
    folder.new_run(first).write_failure(FAILURE)
    folder.new_run(second).write_failure(FAILURE)
    after = study_status(folder, known=before, names=[first.name])
    assert (
        after.of(first.name).state == "failed"
        and after.of(second.name).state == "missing"
    )
    assert study_status(folder, known=after).of(second.name).state == "failed"


def test_each_file_of_a_run_is_read_once_for_a_change(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = folder.points()[0]
    run = folder.new_run(point)
    before = study_status(folder)
    run.write_progress(progress_of(updated=time.time()))
    reads: Counter[str] = Counter()

    def counted(path: Path) -> bytes:
        if Path(path).is_relative_to(run.path):
            reads[Path(path).name] += 1
        return contents(path)

    monkeypatch.setattr("scalestudy.store.record_file.contents", counted)
    after = study_status(folder, known=before, names=[point.name]).of(point.name)
    assert after.state == "running" and after.progress.step == 1
    assert reads.keys() >= {"result.json", "point.json", "job.json", "launcher.json"}
    assert reads["progress.json"] == reads["failure.json"] == 1
    assert set(reads.values()) == {1}


def test_the_state_is_read_without_writing_and_its_end_is_recorded_by_another_call(
    folder: StudyFolder,
) -> None:
    point = folder.points()[0]
    run = folder.new_run(point)
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))
    (run.path / ".secret").touch()
    view = JobView(job="7", state="NODE_FAIL", nodes="n1")
    answers = {"slurm": Answers(asked=1, tried=1, jobs={"7": view})}
    reading = read_status(PointRun.read(folder, point), answers, time.time())
    assert reading.status.state == "failed" and reading.end is not None
    assert run.failure() is None and (run.path / ".secret").exists()
    record_ends([reading])
    assert run.failure() == reading.end
    assert not (run.path / ".secret").exists()


def test_a_run_that_is_at_work_decides_though_a_newer_one_failed(
    folder: StudyFolder,
) -> None:
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
    monkeypatch.setattr(
        type(SLURM.queue), "ask", lambda self, jobs, cluster="": {"7": view}
    )
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
    monkeypatch.setattr(
        type(SLURM.queue), "ask", lambda self, jobs, cluster="": unknown
    )
    with monkeypatch.context() as colleague:
        colleague.setattr(
            "os.geteuid", lambda: (run.path / "job.json").stat().st_uid + 1
        )
        assert study_status(folder, must=True).of("native-w1-s0").state == "queued"
        run.write_job(
            JobRecord(
                job="", submission="1" * 16, submitted=1, site="here", script="x.sh"
            )
        )
        colleague.setattr(type(SLURM.queue), "marked", lambda self: {})
        assert study_status(folder, must=True).of("native-w1-s0").state == "queued"
    assert run.failure() is None
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))
    assert study_status(folder, must=True).of("native-w1-s0").state == "failed"


def test_a_run_that_saves_its_model_is_running_in_that_phase(
    folder: StudyFolder,
) -> None:
    run = folder.new_run(folder.points()[0])
    run.write_launcher_process()
    run.model.write_text("saved")
    run.write_progress(
        progress_of(phase="saving", epoch=2, steps=1, updated=time.time())
    )
    status = study_status(folder).of("native-w1-s0")
    assert (status.state, status.progress.phase, status.result) == (
        "running",
        "saving",
        None,
    )


NOW = 1_000_000.0
STATE_FAILURE = Failure(rank=None, exit_code=1, reason="it failed")


def progress(age: float) -> Progress:
    return progress_of(updated=NOW - age)


def state(
    files: RunFiles,
    slurm: str | None,
    *,
    reported: float | None = None,
    ended: float | None = None,
) -> Derived:
    view = JobView(job="1", state=slurm) if slurm else None
    return derive(
        files,
        view,
        now=NOW,
        reported=reported,
        ended=None if ended is None else NOW - ended,
    )


WRITTEN = STATE_FAILURE.model_copy(update={"cancelled": True})
OVER = Derived("failed", over=True)


@pytest.mark.parametrize(
    ("files", "slurm", "expected"),
    [
        *(
            (RunFiles(result=True), slurm, Derived("done"))
            for slurm in (None, "PENDING", "RUNNING", UNKNOWN)
        ),
        *((RunFiles(), slurm, Derived("queued")) for slurm in ("PENDING", "REQUEUED")),
        *(
            (RunFiles(), slurm, Derived("running"))
            for slurm in ("RUNNING", "COMPLETING", "SUSPENDED")
        ),
        # put back into the queue
        (
            RunFiles(failure=STATE_FAILURE, exit_code=1),
            "PENDING",
            Derived("queued", revived=True),
        ),
        (RunFiles(failure=STATE_FAILURE), "RUNNING", Derived("running", revived=True)),
        (RunFiles(exit_code=143), "PENDING", Derived("queued")),
        # ended by a person
        (RunFiles(progress=progress(1)), "CANCELLED", Derived("cancelled", over=True)),
        (RunFiles(failure=WRITTEN), "CANCELLED", Derived("cancelled")),
        (RunFiles(failure=WRITTEN), None, Derived("cancelled")),
        # over without a result; a failure is written down once
        *(
            (RunFiles(progress=progress(1)), end, OVER)
            for end in sorted(ENDED - {"COMPLETED", "CANCELLED"})
        ),
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
        (
            RunFiles(failure=STATE_FAILURE, progress=progress(1)),
            None,
            Derived("failed"),
        ),
    ],
)
def test_a_state_follows_from_the_files_and_from_slurms_word(
    files, slurm, expected
) -> None:
    assert state(files, slurm, ended=0) == expected


@pytest.mark.parametrize("age", [1, 3600, -3600])
def test_only_progress_since_slurms_word_shows_that_it_runs_whatever_the_nodes_clock(
    age,
) -> None:
    files = RunFiles(progress=progress(age))
    assert state(files, "PENDING", reported=NOW - age).state == "queued"
    assert state(files, "PENDING", reported=NOW - age - 5).state == "running"
    assert state(files, "PENDING").state == "running"


@pytest.mark.parametrize(
    ("ended", "expected"),
    [(FILES_LATE - 1, Derived("running")), (FILES_LATE + 1, OVER)],
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
    slurm=st.none()
    | st.sampled_from([*sorted(WAITING | RUNNING | ENDED), UNKNOWN, "NEW_IN_SLURM_99"]),
    ended=st.none() | st.floats(0, 100),
)
def test_only_slurms_word_writes_a_failure_and_never_over_a_live_job(
    files, slurm, ended
) -> None:
    derived = state(files, slurm, ended=ended)
    assert not derived.over or (
        derived.state in ("failed", "cancelled")
        and slurm not in WAITING | RUNNING | {None}
    )
    assert not derived.revived or derived.state in ("queued", "running")
    assert files.result == (derived.state == "done")


WAITS = {"1": JobView(job="1", state="PENDING", reason="Priority")}
RUNS = {"1": JobView(job="1", state="RUNNING", nodes="node1")}
ENDS = {"1": JobView(job="1", state="TIMEOUT", nodes="node1")}


@pytest.fixture
def slurm(programs):
    """Let squeue answer this, without accounting; the returned function counts its calls."""

    def say(squeue: str):
        asked = programs(squeue=squeue, sacct="exit 1", scontrol="exit 1")
        return lambda: sum(call.startswith("squeue") for call in asked())

    return say


def test_the_interval_grows_while_nothing_changes_and_shrinks_when_something_does() -> (
    None
):
    queue, intervals = Answers().answered(WAITS, now=0), []
    for now in range(1, 12):
        queue = queue.answered(WAITS, now=now)
        intervals.append(queue.interval)
    assert (
        intervals == sorted(intervals)
        and intervals[0] > SHORTEST
        and intervals[-1] == LONGEST
    )
    assert queue.answered(RUNS, now=20).interval == SHORTEST


@pytest.mark.parametrize(
    ("views", "interval", "now", "jobs", "over", "due"),
    [
        pytest.param(WAITS, 10.0, 109, ["1"], [], False, id="within the interval"),
        pytest.param(WAITS, 10.0, 110, ["1"], [], True, id="after it"),
        pytest.param(RUNS, 60.0, 100 + SHORTEST, ["1", "2"], [], True, id="a new job"),
        pytest.param(
            RUNS, 60.0, 100 + SHORTEST, ["1"], ["1"], True, id="over, by its files"
        ),
        pytest.param(RUNS, 60.0, 100.5, ["1"], ["1"], False, id="over, but just asked"),
        pytest.param(
            WAITS,
            60.0,
            100 + SHORTEST,
            ["1"],
            ["1"],
            False,
            id="put back into the queue",
        ),
        pytest.param(
            WAITS, SHORTEST, 10, ["1"], [], True, id="a clock that was set back"
        ),
    ],
)
def test_the_queue_is_asked_after_the_interval_and_soon_where_there_is_news(
    views, interval, now, jobs, over, due
) -> None:
    queue = Answers().answered(views, now=100).model_copy(update={"interval": interval})
    assert queue.due(jobs, now=now, over=over) is due


def test_the_end_of_a_job_keeps_the_time_of_the_answer_that_said_so_first() -> None:
    queue = Answers().answered(ENDS, now=5).answered(ENDS, now=9)
    assert queue.ended == {"1": 5}
    assert queue.answered(RUNS, now=12).ended == {}


def test_without_an_answer_the_last_one_stays_and_the_interval_doubles() -> None:
    queue = Answers().answered(WAITS, now=5).unanswered("none within 20 s", now=9)
    assert (queue.asked, queue.tried, queue.jobs, queue.error) == (
        5,
        9,
        WAITS,
        "none within 20 s",
    )
    assert queue.interval == 2 * SHORTEST
    for now in range(10):
        queue = queue.unanswered("none", now=now)
    assert queue.interval == LONGEST
    assert not queue.due(["1", "new"], now=now + LONGEST - 1)


def test_an_answer_is_kept_in_the_folder_and_serves_the_next_one_who_asks(
    slurm, tmp_path: Path
) -> None:
    asked = slurm("echo '1|PENDING||N/A|Priority'")
    assert poll(tmp_path, SLURM.queue, ["1"], now=100).jobs == WAITS
    assert poll(tmp_path, SLURM.queue, ["1"], now=101).jobs == WAITS
    assert asked() == 1
    poll(tmp_path, SLURM.queue, ["1"], now=101, must=True)
    assert asked() == 2
    forget_answers(tmp_path)
    assert read_answers(tmp_path, "slurm") == Answers()


def test_a_silent_slurm_leaves_the_last_answer_with_its_age(
    slurm, tmp_path: Path
) -> None:
    slurm("echo '1|PENDING||N/A|Priority'")
    poll(tmp_path, SLURM.queue, ["1"], now=100)
    slurm(
        "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"
    )
    queue = poll(tmp_path, SLURM.queue, ["1"], now=200)
    assert (
        queue.jobs == WAITS
        and queue.asked == 100
        and "Unable to contact" in queue.error
    )
    with pytest.raises(QueueUnreachable):
        poll(tmp_path, SLURM.queue, ["1"], now=300, must=True)


def test_without_accounting_and_memory_a_job_is_unknown(slurm, tmp_path: Path) -> None:
    slurm("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    queue = poll(tmp_path, SLURM.queue, ["1"], now=100)
    assert queue.jobs["1"].state == "UNKNOWN" and queue.ended == {"1": 100}


@pytest.mark.parametrize("text", ["", "{", '{"tried": "soon"}', '{"tried": "NaN"}'])
def test_a_damaged_answer_is_none(tmp_path: Path, text: str) -> None:
    answers_file(tmp_path, "slurm").write_text(text)
    assert read_answers(tmp_path, "slurm") == Answers()


DIGITS = "fedcba9876543210"
POINT = "native-w1-s1"
SILENT = 'echo "error: Unable to contact slurm controller" >&2; exit 1'
KNOWN = f"""if [[ $* == *-j* ]]; then echo "77|RUNNING|n1||None"
else echo "77|of a site scalestudy:{DIGITS}"; fi"""


@pytest.fixture
def run(folder: StudyFolder) -> RunFolder:
    """A run that Slurm may or may not have accepted; its submitting process has ended."""
    run = folder.new_run(next(each for each in folder.points() if each.name == POINT))
    run.write_launcher_process(
        LauncherProcess(pid=1, host="elsewhere", started="", written=0.0)
    )
    run.write_job(
        JobRecord(
            job="", submission=DIGITS, submitted=time.time(), site="here", script="x.sh"
        )
    )
    return run


def test_it_waits_in_the_queue_as_long_as_nobody_says_otherwise(
    folder, run, programs
) -> None:
    programs(squeue=SILENT)
    assert study_status(folder).of(POINT).state == "queued"
    with pytest.raises(QueueUnreachable):
        study_status(folder, must=True)


def test_its_job_is_found_by_its_mark(folder, run, programs) -> None:
    programs(squeue=KNOWN)
    found = study_status(folder).of(POINT)
    assert found.state == "running" and found.job and found.job.job == "77"
    assert run.job().job == "77"


def test_what_was_never_taken_has_failed_and_is_submitted_anew(
    folder, run, programs
) -> None:
    programs(squeue="")
    found = study_status(folder).of(POINT)
    assert found.state == "failed" and "Slurm never took its job" in found.reason
    assert next_submission(found, limit=3) == Submission(2)


def test_a_run_that_would_go_on_still_does(folder, run, programs) -> None:
    run.checkpoint.touch()
    programs(squeue="")
    assert next_submission(study_status(folder).of(POINT), limit=3) == Submission(
        2, run
    )


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
    (run.path / "began").write_text(
        f"{DIGITS} none\n"
    )  # started by hand, outside of a job
    assert run.job().job == ""
