import os
from pathlib import Path

import pytest

import synthetic
from scalestudy.cli.options import open_study
from scalestudy.util.errors import UserError


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study(folder, age=0):
    synthetic.write(folder, folder.name, [synthetic.run()])
    os.utime(folder / "study.json", (1e9 - age, 1e9 - age))
    return folder


def test_a_study_is_named_by_its_folder_or_by_its_file(here):
    folder = study(here / "studies" / "first")
    (here / "first.toml").write_text('task = "unet"\n')
    assert open_study(folder).path == folder
    assert open_study(Path("first.toml")).path.resolve() == folder


def test_without_a_name_it_is_the_newest_here(here, monkeypatch):
    study(here / "studies" / "old", age=100)
    newest = study(here / "studies" / "new")
    assert open_study(None).path.resolve() == newest
    monkeypatch.chdir(here / "studies" / "old")
    assert open_study(None).path.resolve() == here / "studies" / "old"


def test_a_file_that_was_not_run_and_a_folder_without_studies_are_refused(here):
    (here / "new.toml").write_text('task = "unet"\n')
    for given in (Path("new.toml"), None):
        with pytest.raises(UserError):
            open_study(given)
