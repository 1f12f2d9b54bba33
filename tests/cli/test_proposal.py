"""`scalestudy proposal`."""

from pathlib import Path

import pytest

from scalestudy.store.study_folder import StudyFolder
from synthetic_result import result_of


@pytest.fixture
def done(folder: StudyFolder) -> Path:
    """A study with two finished runs."""
    for point in folder.points():
        folder.new_run(point).write_result(result_of(point))
    return folder.path


def test_the_panels_are_listed_with_their_units(call) -> None:
    code, text, _ = call("proposal", "--list")
    assert code == 0
    assert "csc " in text and "(GPU-h; read 2026-11-22)" in text


def test_a_page_is_printed_and_says_what_is_missing(call, done: Path) -> None:
    code, text, errors = call("proposal", done, "--panel", "csc", "--runs", 3)
    assert code == 0
    assert text.startswith("# Scaling test and request\n")
    assert "| Trainings | 3 | `--runs` |" in text
    assert "## Missing for this panel" in text
    assert "items that csc asks for" in errors


@pytest.mark.slow
def test_a_file_has_the_form_of_its_ending_and_its_figures_beside_it(
    call, done: Path, tmp_path: Path
) -> None:
    code, _, errors = call("proposal", done, "--panel", "csc", "--out", tmp_path / "page.md")
    assert code == 0
    assert str(tmp_path / "page.md") in errors and str(tmp_path / "page-figures") in errors
    assert "page-figures/" in (tmp_path / "page.md").read_text()
    assert call("proposal", done, "--panel", "csc", "--out", tmp_path / "page.html")[0] == 0
    assert "</html>" in (tmp_path / "page.html").read_text()


def test_a_study_without_results_has_a_page_of_what_is_missing(call, folder: StudyFolder) -> None:
    code, text, _ = call("proposal", folder.path, "--panel", "hlrs")
    assert code == 0
    assert "no run has finished" in text and "We request" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--panel", "cs"), "Did you mean `csc"),
        (("--panel", "csc", "--workers", 16), "native on 2 workers"),
        (("--panel", "csc", "--runs", 0), "--runs"),
        (("--panel", "csc", "--format", "docx"), "markdown, html"),
        ((), "--panel NAME"),
    ],
)
def test_what_makes_no_page_ends_with_2(call, done: Path, options, words: str) -> None:
    code, _, errors = call("proposal", done, *options)
    assert code == 2
    assert words in " ".join(errors.split())


def test_a_file_that_cannot_be_written_ends_with_2(call, done: Path, tmp_path: Path) -> None:
    code, _, errors = call("proposal", done, "--panel", "csc", "--out", tmp_path / "no" / "page.md")
    assert code == 2
    assert "a file that can be written" in errors
