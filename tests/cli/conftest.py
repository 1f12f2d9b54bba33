import os
from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study
from scalestudy.store.study_folder import StudyFolder
from synthetic_result import finish

TEXT = 'task = "cnn"\n[train]\nbatch_size = 32\n[sweep]\nworkers = [1, 2]\nseed = 0\n'


@pytest.fixture
def study(write_study) -> Path:
    """A study file of two points; its data sets are prepared beside it."""
    return write_study(TEXT)


@pytest.fixture
def folder(study: Path) -> StudyFolder:
    """The study's results folder, without runs."""
    loaded = load_study(study)
    points = expand(loaded, gpus=0, cores=8)
    return StudyFolder.create_or_open(
        study.parent / "studies" / "study", loaded, points, TEXT
    )


@pytest.fixture
def folder_of_runs(folder: StudyFolder) -> Path:
    """The study's results folder with a finished run for each point."""
    for point in folder.points():
        run = folder.new_run(point)
        finish(run)
        run.write_checksums()
    return folder.path


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install Slurm clients with these bodies; the returned file records their calls."""
    programs, asked = tmp_path / "bin", tmp_path / "asked"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    silent = {
        "squeue": "",
        "sacct": "exit 1",
        "scontrol": "echo ClusterName = test",
        "scancel": "",
    }

    def make(**bodies: str) -> Path:
        for name, body in (silent | bodies).items():
            file = programs / name
            file.write_text(f'#!/bin/bash\necho {name} "$@" >> {asked}\n{body}\n')
            file.chmod(0o755)
        return asked

    return make
