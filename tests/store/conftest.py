from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.store.records import EpochRecord, Failure, Progress, Result, Sign
from scalestudy.store.study_folder import StudyFolder
from synthetic_result import epoch_of, progress_of, result_of

TEXT = 'task = "cnn"\n[sweep]\nworkers = [1, 2]\nseed = 0\n'


POINT = expand(parse_study(TEXT, Path("study.toml")), gpus=0, cores=8)[0]


class Records:
    """Records with plain values."""

    @staticmethod
    def result(name: str = "native-w1-s0") -> Result:
        return result_of(POINT, quality=0.5).model_copy(update={"name": name})

    @staticmethod
    def epoch(number: int = 1) -> EpochRecord:
        return epoch_of(number)

    @staticmethod
    def progress(updated: float = 0.0) -> Progress:
        return progress_of(updated=updated)

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
        return Failure(
            rank=1,
            exit_code=3,
            reason="rank 1 ended with exit code 3",
            tail=["last words"],
        )


@pytest.fixture
def records() -> type[Records]:
    return Records


@pytest.fixture
def make(tmp_path: Path):
    """Create or open the folder of the study with this text."""

    def folder(
        text: str = TEXT, path: Path | None = None, *, cores: int = 8
    ) -> StudyFolder:
        study = parse_study(text, Path("study.toml"))
        points = expand(study, gpus=0, cores=cores)
        return StudyFolder.create_or_open(
            path or tmp_path / "results", study, points, text
        )

    return folder
