"""All commands report the same state of a study, for every state of its files and every answer of a queue."""

import itertools
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scalestudy.analysis.wording.advice import UNDONE
from scalestudy.app.plan import plan_study, request_of
from scalestudy.config.parse import load_study
from scalestudy.launch.job_view import UNKNOWN, JobView
from scalestudy.launch.launcher import Options, launcher_of
from scalestudy.launch.point_run import KILLED
from scalestudy.launch.queue.launchers import SLURM
from scalestudy.launch.scheduler import QueueUnreachable
from scalestudy.launch.study_status import study_status
from scalestudy.store.records import Failure, JobRecord
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from synthetic_result import finish, progress_of, result_of

VARIES = "native-w2-s0"
SITE = "cpus_per_node = 4\n"
LAUNCH = '[launch]\non = "slurm"\nsite = "here.toml"\n'
ANSWERS = (
    "PENDING",
    "RUNNING",
    "TIMEOUT",
    "NODE_FAIL",
    "COMPLETED",
    "CANCELLED",
    UNKNOWN,
    "silent",
)


def progress(run: RunFolder, age: float) -> None:
    run.write_progress(progress_of(updated=time.time() - age))


def failure(run: RunFolder) -> None:
    run.write_failure(
        Failure(rank=1, exit_code=3, reason="rank 1 gave up", job_state="FAILED")
    )


def exited(code: int) -> Callable[[RunFolder], None]:
    def write(run: RunFolder) -> None:
        (run.path / "exit").write_text(f"{code}\n")

    return write


CANCELLED = Failure(
    rank=None, exit_code=None, reason="interrupted by the user", cancelled=True
)
FILES: dict[str, tuple[Callable[[RunFolder], object], ...]] = {
    "nothing": (),
    "fresh progress": (lambda run: progress(run, 0),),
    "old progress": (lambda run: progress(run, 600),),
    "exit 3": (exited(3),),
    "exit 0": (exited(0),),
    "exit 0 and a checkpoint": (exited(0), lambda run: run.checkpoint.touch()),
    "a failure": (failure,),
    "a failure and fresh progress": (failure, lambda run: progress(run, 0)),
    "a cancellation": (lambda run: run.write_failure(CANCELLED),),
    "a result": (lambda run: run.write_result(result_of(run.point())),),
    "a result and a failure": (
        failure,
        lambda run: run.write_result(result_of(run.point())),
    ),
}
STATES = {
    "nothing": "queued",
    "fresh progress": "running",
    "exit 3": "failed",
    "a cancellation": "cancelled",
    "a result": "done",
}
"""State by the run's files if the queue does not answer."""
OWNERS: dict[str, Callable[[RunFolder], object]] = {
    "alive": lambda run: None,
    "dead": lambda run: run.write_launcher_process(
        run.launcher_process().model_copy(update={"pid": 1})
    ),
    "elsewhere, silent": lambda run: run.write_launcher_process(
        run.launcher_process().model_copy(update={"host": "elsewhere", "written": 0.0})
    ),
    "none": lambda run: (run.path / "launcher.json").unlink(),
}


@pytest.fixture
def made(study: Path, monkeypatch: pytest.MonkeyPatch):
    """A study of two points, one of them done."""
    monkeypatch.setattr("scalestudy.hardware.devices.gpus", lambda: 0)
    monkeypatch.setattr("scalestudy.hardware.cores.granted", lambda: [0, 1])

    def make(*, queued: bool) -> StudyFolder:
        if queued:
            (study.parent / "here.toml").write_text(SITE)
            study.write_text(study.read_text() + LAUNCH)
        loaded = load_study(study)
        points = launcher_of(loaded).points(loaded, Options(base=study.parent))
        folder = StudyFolder.create_or_open(
            study.parent / "studies" / "study", loaded, points, study.read_text()
        )
        first = folder.new_run(points[0])
        finish(first)
        return folder

    return make


def given_to_queue(run: RunFolder) -> None:
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))


def answer(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    def ask(self: object, jobs: list[str], *, cluster: str = "") -> dict[str, JobView]:
        if word == "silent":
            raise QueueUnreachable("Slurm", "squeue", "none within 1 s")
        return {
            job: JobView(job=job, state=word, reason="Resources", nodes="n1")
            for job in jobs
        }

    monkeypatch.setattr(type(SLURM.queue), "ask", ask)


def state_of(study: Path, folder: StudyFolder) -> tuple[str, str]:
    """State and reason of the point that varies; `run` and `status` must agree on both."""
    before = plan_study(request_of(study), dry=True).overview.of(VARIES)
    after = study_status(folder).of(VARIES)
    assert (after.state, after.reason) == (before.state, before.reason)
    return after.state, after.reason


@pytest.mark.slow
def test_every_command_says_so(
    call, study: Path, made, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(queued=True)
    answer(monkeypatch, "silent")
    for files, state in STATES.items():
        run = folder.new_run(folder.points()[1])
        given_to_queue(run)
        for write in FILES[files]:
            write(run)
        _, reason = known = state_of(study, folder)
        assert known[0] == state
        table = " ".join(call("status", folder.path)[1].split())
        others = {"failed", "cancelled", "running", "queued", "missing"} - {state}
        assert f" {state}" in table and reason in table
        assert not any(f" 1 {other}" in table for other in others)
        for command in ("status", "report"):
            points = json.loads(call(command, folder.path, "--format", "json")[1])[
                "points"
            ]
            assert [(point["state"], point["reason"] or "") for point in points][
                1
            ] == known
        assert (f" {state}: {VARIES}" in call("report", folder.path)[1]) == (
            state in UNDONE
        )
        shutil.rmtree(run.path)


@pytest.mark.parametrize(("files", "word"), [*itertools.product(FILES, ANSWERS)])
def test_of_a_job_all_say_the_same(
    study: Path, made, monkeypatch: pytest.MonkeyPatch, files: str, word: str
) -> None:
    folder = made(queued=True)
    run = folder.new_run(folder.points()[1])
    given_to_queue(run)
    for write in FILES[files]:
        write(run)
    answer(monkeypatch, word)
    state, reason = state_of(study, folder)
    if "result" in files:
        assert state == "done"
    elif word == "CANCELLED" and "failure" not in files:
        assert state == "cancelled" and reason
    elif files == "a cancellation":
        assert state == "cancelled" and reason == "interrupted by the user"
    elif word in ("TIMEOUT", "NODE_FAIL", "CANCELLED"):
        assert state == "failed" and reason
    elif "failure" not in files and word == "RUNNING":
        assert state == "running"


@pytest.mark.parametrize(("files", "owner"), [*itertools.product(FILES, OWNERS)])
def test_of_a_run_of_this_machine_all_say_the_same(
    study: Path, made, files: str, owner: str
) -> None:
    folder = made(queued=False)
    run = folder.new_run(folder.points()[1])
    for write in (*FILES[files], OWNERS[owner]):
        write(run)
    state, reason = state_of(study, folder)
    if files == "a cancellation":
        assert (state, reason) == ("cancelled", "interrupted by the user")
    elif owner == "dead" and "result" not in files and "failure" not in files:
        assert (state, reason) == ("failed", KILLED)


def test_of_a_point_without_runs_all_say_that_it_is_missing(study: Path, made) -> None:
    assert state_of(study, made(queued=False)) == ("missing", "")
