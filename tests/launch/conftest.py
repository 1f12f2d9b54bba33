import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.store.study_folder import StudyFolder

TEXT = 'task = "cnn"\n[sweep]\nworkers = [1, 2]\nseed = [0, 1]\n'


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    """A study of four points, without runs."""
    study = parse_study(TEXT, Path("study.toml"))
    return StudyFolder.create_or_open(
        tmp_path / "results", study, expand(study, gpus=0, cores=8), TEXT
    )


@pytest.fixture
def programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Callable[[], list[str]]]:
    """Put client commands with these bodies first on PATH; the returned function lists their calls."""
    place = tmp_path / "programs"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")

    def make(**bodies: str) -> Callable[[], list[str]]:
        asked = tmp_path / "asked"
        for name, body in bodies.items():
            file = place / name
            file.write_text(f'#!/bin/bash\necho {name} "$@" >> {asked}\n{body}\n')
            file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return lambda: asked.read_text().splitlines() if asked.exists() else []

    return make
