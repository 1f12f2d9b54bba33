"""The gallery of `docs/`: its pictures exist, are small, and state how they were made."""

import importlib.util
import re
from pathlib import Path

import pytest

from scalestudy.config.parse import parse_study

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
PAGES = sorted(GALLERY.glob("*.md"))
STUDIES = sorted(GALLERY.glob("*.toml"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_study_files_are_valid(file, monkeypatch):
    monkeypatch.setenv("DATA", "/data")
    assert parse_study(file.read_text(), file).name == file.stem


def test_the_pictures_of_published_numbers_are_made_from_their_table(
    tmp_path, monkeypatch
):
    spec = importlib.util.spec_from_file_location("make_gallery", GALLERY / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    monkeypatch.setattr(make, "HERE", tmp_path)
    make.main(tmp_path)
    kept = {picture.name for picture in GALLERY.glob("published-unet-*.svg")}
    assert {picture.name for picture in tmp_path.glob("*.svg")} == kept
    numbers = re.compile(r'aria-label="Workers: [^"]*"')
    for name in kept:
        assert numbers.findall((tmp_path / name).read_text()) == numbers.findall(
            (GALLERY / name).read_text()
        )
    assert numbers.search((GALLERY / "published-unet-speedup.svg").read_text())
