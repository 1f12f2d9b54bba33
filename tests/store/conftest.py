from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.store.records import EpochRecord, Failure, Progress, Result, Sign
from scalestudy.store.study_folder import StudyFolder

TEXT = 'task = "cnn"\n[sweep]\nworkers = [1, 2]\nseed = 0\n'


class Records:
    """Records with plain values."""

    @staticmethod
    def result(name: str = "native-w1-s0") -> Result:
        return Result(
            name=name,
            strategy="native",
            implementation="single",
            workers=1,
            seed=0,
            per_worker_batch=8,
            global_batch=8,
            epochs=2,
            updates=4,
            samples_processed=32,
            training_samples=16,
            throughput=10.0,
            steady_epochs=1,
            training_seconds=3.0,
            wall_seconds=5.0,
            phases={"training": 3.0},
            metric="accuracy",
            quality=0.5,
            best_quality=0.5,
            best_epoch=2,
            parameters=10,
            weights_digest="0",
            finished="2020-01-01",
        )

    @staticmethod
    def epoch(number: int = 1) -> EpochRecord:
        return EpochRecord(
            epoch=number,
            steps=2,
            samples=16,
            learning_rate=0.1,
            loss=1.0,
            train_seconds=1.0,
            input_seconds=0.0,
            elapsed_training_seconds=float(number),
        )

    @staticmethod
    def progress(updated: float = 0.0) -> Progress:
        return Progress(phase="training", epoch=1, epochs=2, step=1, steps=2, updated=updated)

    @staticmethod
    def sign() -> Sign:
        return Sign(
            rank=0,
            host="node1",
            pid=7,
            phase="step",
            epoch=1,
            step=2,
            marks=3,
            moved=0.0,
            due=120.0,
            written=0.0,
        )

    @staticmethod
    def failure() -> Failure:
        return Failure(rank=1, exit_code=3, reason="rank 1 ended with exit code 3", tail=["last words"])


@pytest.fixture
def records() -> type[Records]:
    return Records


@pytest.fixture
def make(tmp_path: Path):
    """Create or open the folder of the study with this text."""

    def folder(text: str = TEXT, path: Path | None = None, *, cores: int = 8) -> StudyFolder:
        study = parse_study(text, Path("study.toml"))
        points = expand(study, gpus=0, cores=cores)
        return StudyFolder.create_or_open(path or tmp_path / "results", study, points, text)

    return folder
