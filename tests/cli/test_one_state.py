"""Whoever is asked how a study stands says the same: every state of its files, every word of a queue."""

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scalestudy.analysis.open_questions import UNDONE
from scalestudy.app.survey import request_of, survey
from scalestudy.launch.base import Options, launcher_of
from scalestudy.launch.queue.base import UNKNOWN, JobView, QueueUnreachable
from scalestudy.launch.slurm import SLURM
from scalestudy.launch.status import KILLED, study_status
from scalestudy.study.parse import load_study
from scalestudy.study.records import EpochRecord, Failure, JobRecord, Progress
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.store import StudyFolder
from synthetic_result import result_of

VARIES = "native-w2-s0"
SITE = "cpus_per_node = 4\n"
LAUNCH = '[launch]\non = "slurm"\nsite = "here.toml"\n'
ANSWERS = ("PENDING", "RUNNING", "TIMEOUT", "NODE_FAIL", "COMPLETED", "CANCELLED", UNKNOWN, "silent")


def progress(run: RunFolder, age: float) -> None:
    run.write_progress(
        Progress(phase="training", epoch=1, epochs=2, step=1, steps=2, updated=time.time() - age)
    )


def failure(run: RunFolder) -> None:
    run.write_failure(Failure(rank=1, exit_code=3, reason="rank 1 gave up", job_state="FAILED"))


def exited(code: int) -> Callable[[RunFolder], None]:
    def write(run: RunFolder) -> None:
        (run.path / "exit").write_text(f"{code}\n")

    return write


CANCELLED = Failure(rank=None, exit_code=None, reason="interrupted by the user", cancelled=True)
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
    "a result and a failure": (failure, lambda run: run.write_result(result_of(run.point()))),
}
OWNERS: dict[str, Callable[[RunFolder], object]] = {
    "alive": lambda run: None,
    "dead": lambda run: run.write_launcher_process(run.launcher_process().model_copy(update={"pid": 1})),
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
        first.append_epoch(
            EpochRecord(
                epoch=1, steps=2, samples=16, learning_rate=0.1, loss=1.0, train_seconds=1.0,
                input_seconds=0.0, elapsed_training_seconds=1.0,
            )
        )  # fmt: skip
        first.write_result(result_of(first.point()))
        return folder

    return make


def answer(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    def ask(self: object, jobs: list[str], *, cluster: str = "") -> dict[str, JobView]:
        if word == "silent":
            raise QueueUnreachable("Slurm", "squeue", "none within 1 s")
        return {job: JobView(job=job, state=word, reason="Resources", nodes="n1") for job in jobs}

    monkeypatch.setattr(type(SLURM.queue), "ask", ask)


def what_all_say(call, study: Path, folder: StudyFolder) -> tuple[str, str]:
    """State and reason of the point that varies, which every command has to agree on."""
    before = survey(request_of(study), must=False).overview.of(VARIES)
    state, reason = before.state, before.reason
    code, table, _ = call("status", folder.path)
    assert code == 0
    words = " ".join(table.split())
    others = [each for each in ("failed", "cancelled", "running", "queued", "missing") if each != state]
    assert f" {state}" in words and not any(f" 1 {each}" in words for each in others)
    assert reason in words
    told = json.loads(call("report", folder.path, "--format", "json")[1])["points"]
    assert [(each["state"], each["reason"] or "") for each in told if each["name"] == VARIES] == [
        (state, reason)
    ]
    assert (f" {state}: {VARIES}" in call("report", folder.path)[1]) == (state in UNDONE)
    record = json.loads(call("status", folder.path, "--format", "json")[1])
    assert [(each["state"], each["reason"] or "") for each in record["points"] if each["name"] == VARIES] == [
        (state, reason)
    ]
    after = study_status(folder).of(VARIES)
    assert (after.state, after.reason) == (state, reason)
    return state, reason


@pytest.mark.parametrize(("files", "word"), [*itertools.product(FILES, ANSWERS)])
def test_of_a_job_all_say_the_same(
    call, study: Path, made, monkeypatch: pytest.MonkeyPatch, files: str, word: str
) -> None:
    folder = made(queued=True)
    run = folder.new_run(folder.points()[1])
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))
    for write in FILES[files]:
        write(run)
    answer(monkeypatch, word)
    state, reason = what_all_say(call, study, folder)
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
def test_of_a_run_of_this_machine_all_say_the_same(call, study: Path, made, files: str, owner: str) -> None:
    folder = made(queued=False)
    run = folder.new_run(folder.points()[1])
    for write in (*FILES[files], OWNERS[owner]):
        write(run)
    state, reason = what_all_say(call, study, folder)
    if files == "a cancellation":
        assert (state, reason) == ("cancelled", "interrupted by the user")
    elif owner == "dead" and "result" not in files and "failure" not in files:
        assert (state, reason) == ("failed", KILLED)


def test_of_a_point_without_runs_all_say_that_it_is_missing(call, study: Path, made) -> None:
    assert what_all_say(call, study, made(queued=False)) == ("missing", "")
