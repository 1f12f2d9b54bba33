from pathlib import Path

import pytest

from scalestudy.launch.local.run import RunOutcome
from scalestudy.study.expand import expand
from scalestudy.study.parse import load_study
from scalestudy.study.records import EpochRecord, Failure, Progress
from scalestudy.study.store import StudyFolder
from synthetic_result import result_of

TEXT = 'task = "cnn"\n[train]\nbatch_size = 32\n[sweep]\nworkers = [1, 2]\nseed = 0\n'


@pytest.fixture
def study(write_study) -> Path:
    """A study file of two points; data sets are prepared beside it."""
    return write_study(TEXT)


@pytest.fixture
def folder(study: Path) -> StudyFolder:
    """Its results folder, without runs."""
    loaded = load_study(study)
    points = expand(loaded, gpus=0, cores=8)
    return StudyFolder.create_or_open(study.parent / "studies" / "study", loaded, points, TEXT)


def epoch(number: int) -> EpochRecord:
    return EpochRecord(
        epoch=number, steps=2, samples=16, learning_rate=0.1, loss=1.0 / number, train_seconds=1.0,
        input_seconds=0.0, elapsed_training_seconds=float(number), validation={"loss": 1.0, "accuracy": 0.5},
    )  # fmt: skip


@pytest.fixture
def folder_of_runs(folder: StudyFolder) -> Path:
    """The same with a finished run of each point."""
    for point in folder.points():
        run = folder.new_run(point)
        for number in (1, 2):
            run.append_epoch(epoch(number))
        run.write_result(result_of(point))
        run.write_checksums()
    return folder.path


class FakeLauncher:
    """Stands in for runs here: points named in `fail` fail, `interrupt` is one that Ctrl-C meets."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.fail: set[str] = set()
        self.interrupt: str | None = None
        self.points: list = []

    def __call__(self, folder: StudyFolder, point):
        self.points.append(point)
        run = folder.new_run(point)
        yield run
        run.write_progress(Progress(phase="training", epoch=1, epochs=2, step=1, steps=2, updated=0.0))
        yield run
        if point.name == self.interrupt:
            run.write_failure(Failure(rank=None, exit_code=None, reason="interrupted by the user"))
            raise KeyboardInterrupt
        self.ran.append(point.name)
        failure = None
        if point.name in self.fail:
            failure = Failure(
                rank=1, exit_code=3, reason="rank 1 ended with exit code 3", tail=["last words"]
            )
            run.write_failure(failure)
        else:
            for number in (1, 2):
                run.append_epoch(epoch(number))
            run.write_result(result_of(point))
            run.write_checksums()
        yield run
        return RunOutcome(point, failure is None, failure)


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> FakeLauncher:
    fake = FakeLauncher()
    monkeypatch.setattr("scalestudy.launch.local.run.run_steps", fake)
    monkeypatch.setattr("scalestudy.launch.local.launcher.refuse_missing_software", lambda points: None)
    monkeypatch.setattr("scalestudy.hardware.devices.gpus", lambda: 0)
    monkeypatch.setattr("scalestudy.hardware.cores.granted", lambda: [0, 1])
    return fake
