"""What people look for in a repository says the same everywhere, and what it names is there."""

import re
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
PACKAGE = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
PAGES = ("README.md", "CONTRIBUTING.md")
MADE = ("studies/", "dist/")
"""What paths start with that commands make."""
PATH = r"[`(]((?:[\w.*-]+/)+[\w.*-]+|[A-Z]+\.(?:md|cff))[`)]"


def citation() -> dict:
    return pytest.importorskip("yaml").safe_load((PROJECT / "CITATION.cff").read_text())


def test_there_is_one_licence():
    text = (PROJECT / "LICENSE").read_text()
    assert re.match(r"\s*Apache License\s+Version 2\.0, January 2004", text)
    assert "END OF TERMS AND CONDITIONS" in text
    assert PACKAGE["license"] == citation()["license"] == "Apache-2.0"
    assert "Apache 2.0 (`LICENSE`)" in (PROJECT / "README.md").read_text()


def test_the_citation_is_complete_and_names_no_version_that_goes_stale():
    found = citation()
    assert found["cff-version"] == "1.2.0"
    assert found.keys() >= {"title", "message", "authors", "type", "abstract", "keywords"}
    assert not found.keys() & {"version", "date-released", "commit"}
    for reference in found["references"]:
        assert reference.keys() >= {"type", "title", "authors", "year"}, reference["title"]


def test_the_version_is_written_nowhere():
    assert "version" not in PACKAGE
    assert PACKAGE["dynamic"] == ["version"]


def test_the_changelog_begins_with_what_is_not_released_and_has_a_date_for_all_else():
    headings = re.findall(r"^## (.+)$", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    for heading in headings[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading)


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_that_are_named_exist(page):
    targets = set(re.findall(r"^([\w-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    named = " ".join(re.findall(r"(?:^|`)make ((?:[a-z-]+ ?)+)", (PROJECT / page).read_text(), re.MULTILINE))
    assert named.split()
    assert set(named.split()) <= targets


@pytest.mark.parametrize("page", [*PAGES, "docs/architecture.md"])
def test_files_that_are_named_exist(page):
    named = {word for word in re.findall(PATH, (PROJECT / page).read_text()) if not word.startswith(MADE)}
    assert named
    places = (PROJECT, PROJECT / "src" / "scalestudy")  # rooms are named from within the source
    assert [word for word in sorted(named) if not any(list(place.glob(word)) for place in places)] == []


def test_the_readme_shows_no_example_twice_in_one_place():
    for block in (PROJECT / "README.md").read_text().split("```")[1::2]:
        shown = [
            line.partition("#")[0].strip() for line in re.findall(r"^scalestudy .+$", block, re.MULTILINE)
        ]
        assert sorted(shown) == sorted(set(shown))
