from pathlib import Path

import pytest

from scalestudy.study.expand import expand
from scalestudy.study.parse import load_study
from scalestudy.study.store import StudyFolder

TEXT = 'task = "cnn"\n[train]\nbatch_size = 32\n[sweep]\nworkers = [1, 2]\nseed = 0\n'


@pytest.fixture
def folder(write_study) -> StudyFolder:
    """The folder of a study of two points, without runs."""
    study: Path = write_study(TEXT)
    loaded = load_study(study)
    points = expand(loaded, gpus=0, cores=8)
    return StudyFolder.create_or_open(study.parent / "studies" / "study", loaded, points, TEXT)
