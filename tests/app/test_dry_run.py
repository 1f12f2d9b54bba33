"""A dry run of a study in a queue reads what has become of its jobs, and leaves its folder untouched."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from recording_listener import RecordingListener
from scalestudy.analysis.next_runs import Limits
from scalestudy.app.plan import Request, request_of
from scalestudy.app.row_points import lost_seconds
from scalestudy.app.run_study import dry_run, job_scripts
from scalestudy.app.until import dry_run_until
from scalestudy.config.parse import load_study
from scalestudy.launch.job_view import JobView
from scalestudy.launch.launcher import Options, launcher_of
from scalestudy.launch.queue.launchers import SLURM
from scalestudy.launch.queue.queue_launcher import next_submission
from scalestudy.launch.study_status import study_status
from scalestudy.store.launcher_process import LauncherProcess
from scalestudy.store.records import Failure, JobRecord, Progress
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder

TEXT = """\
task = "cnn"
[sweep]
workers = [1, 2]
seed = 0
[launch]
on = "slurm"
site = "here.toml"
"""
VARIES = "native-w2-s0"
SUBMISSION = "3" * 16


@pytest.fixture
def request_(write_study: Callable[[str], Path]) -> Request:
    file = write_study(TEXT)
    (file.parent / "here.toml").write_text("cpus_per_node = 4\n")
    return request_of(file)


@pytest.fixture
def run(request_: Request) -> RunFolder:
    """A run whose job Slurm started; nothing is known of its end."""
    study = load_study(request_.base / "study.toml")
    points = launcher_of(study).points(study, Options(base=request_.base))
    folder = StudyFolder.create_or_open(request_.target, study, points, TEXT)
    (point,) = [point for point in points if point.name == VARIES]
    run = folder.new_run(point)
    run.write_launcher_process(
        LauncherProcess(pid=1, host="elsewhere", started="", written=0.0)
    )
    (run.path / ".secret").touch()
    submit(run, job="7")
    return run


def submit(run: RunFolder, job: str) -> None:
    run.write_job(
        JobRecord(
            job=job,
            submission=SUBMISSION,
            submitted=time.time(),
            site="here",
            script="x.sh",
        )
    )


def answer(
    monkeypatch: pytest.MonkeyPatch, state: str, marked: dict[str, str] | None = None
) -> None:
    """Let Slurm report this state of each job, and these jobs by the marks of their submissions."""

    def ask(self: object, jobs: list[str], *, cluster: str = "") -> dict[str, JobView]:
        return {job: JobView(job=job, state=state, nodes="n1") for job in jobs}

    monkeypatch.setattr(type(SLURM.queue), "ask", ask)
    monkeypatch.setattr(type(SLURM.queue), "marked", lambda self: marked or {})


def contents_and_times(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.stat()
        content = b"" if path.is_dir() else path.read_bytes()
        found[str(path)] = status.st_mtime_ns, status.st_ctime_ns, content
    return found


def nothing(run: RunFolder) -> None:
    """The run has left no record of its end."""


def failed(run: RunFolder) -> None:
    run.write_failure(Failure(rank=1, exit_code=3, reason="it gave up"))
    run.write_progress(
        Progress(
            phase="training",
            epoch=1,
            epochs=2,
            step=1,
            steps=2,
            updated=time.time(),
        )
    )


def unanswered(run: RunFolder) -> None:
    submit(run, job="")


@pytest.mark.parametrize(
    ("left", "state", "marked", "expected"),
    [
        (nothing, "NODE_FAIL", {}, "failed"),
        (nothing, "RUNNING", {}, "running"),
        (failed, "RUNNING", {}, "running"),
        (unanswered, "RUNNING", {SUBMISSION: "77"}, "running"),
        (unanswered, "", {}, "failed"),
    ],
    ids=["ended", "running", "put back", "found by its mark", "never taken"],
)
def test_it_leaves_every_byte_and_time_of_the_folder_as_they_were(
    request_: Request,
    run: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
    left: Callable[[RunFolder], None],
    state: str,
    marked: dict[str, str],
    expected: str,
) -> None:
    left(run)
    answer(monkeypatch, state, marked)
    before = contents_and_times(request_.target)
    shown = "\n".join(dry_run(request_, listener=RecordingListener()))
    list(dry_run_until(request_, Limits()))
    job_scripts(request_, point=VARIES, listener=RecordingListener())
    assert contents_and_times(request_.target) == before
    assert (f"jobs/{VARIES}.sh" in shown) is (expected == "failed")
    # What a command that acts on the study then writes down is what the dry run saw.
    assert study_status(StudyFolder.open(request_.target)).of(VARIES).state == expected
    assert contents_and_times(request_.target) != before


def test_it_shows_the_script_that_a_submission_would_write(
    request_: Request, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.checkpoint.touch()
    answer(monkeypatch, "NODE_FAIL")
    options = Options(resubmissions=1)
    scripts = job_scripts(
        request_,
        point=VARIES,
        options=options,
        listener=RecordingListener(),
    )
    assert f"points/{VARIES}/run-1" in scripts[VARIES]
    status = study_status(StudyFolder.open(request_.target)).of(VARIES)
    submission = next_submission(status, limit=1)
    assert submission is not None
    assert submission.resume == run, "the same folder"


def test_a_run_that_is_in_the_queue_again_has_lost_no_time(
    request_: Request, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed(run)
    answer(monkeypatch, "RUNNING")
    folder = StudyFolder.open(request_.target)
    seen = study_status(folder, record=False).of(VARIES)
    assert lost_seconds([run], seen, expected=100.0) == 0.0
    answer(monkeypatch, "NODE_FAIL")
    seen = study_status(folder, record=False, must=True).of(VARIES)
    assert lost_seconds([run], seen, expected=100.0) == 100.0
