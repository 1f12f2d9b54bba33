"""What the repository says of itself in several places is the same everywhere."""

import re
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
PACKAGE = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]


def citation() -> dict:
    return pytest.importorskip("yaml").safe_load((PROJECT / "CITATION.cff").read_text())


def test_there_is_one_licence():
    text = (PROJECT / "LICENSE").read_text()
    assert re.match(r"\s*Apache License\s+Version 2\.0, January 2004", text)
    assert PACKAGE["license"] == citation()["license"] == "Apache-2.0"


def test_the_version_is_written_nowhere():
    assert "version" not in PACKAGE
    assert PACKAGE["dynamic"] == ["version"]
    assert not citation().keys() & {"version", "date-released", "commit"}


def test_the_changelog_begins_with_what_is_not_released_and_has_a_date_for_all_else():
    headings = re.findall(r"^## (.+)$", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    for heading in headings[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading)
