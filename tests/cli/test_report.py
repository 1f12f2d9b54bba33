import csv
import json
from io import StringIO
from pathlib import Path

import pytest


@pytest.fixture
def finished(call, study: Path, launcher) -> Path:
    call("run", study, "--no-report")
    return study.parent / "studies" / "study"


def test_the_report_comes_as_a_table_csv_and_json(call, finished: Path) -> None:
    code, text, _ = call("report", finished)
    assert code == 0
    assert "Strategy" in text
    rows = list(csv.DictReader(StringIO(call("report", finished, "--format", "csv")[1])))
    assert [row["workers"] for row in rows] == ["1", "2"]
    document = json.loads(call("report", finished, "--format", "json")[1])
    assert [row["workers"] for row in document["rows"]] == [1, 2]


def test_the_report_goes_to_a_file_on_request(call, finished: Path, tmp_path: Path) -> None:
    for form in ("csv", "json", "html", "table"):
        file = tmp_path / f"out.{form}"
        assert call("report", finished, "--format", form, "--out", file)[0] == 0
        assert file.stat().st_size > 0


def test_the_ending_of_the_file_says_the_form(call, finished: Path, tmp_path: Path) -> None:
    assert call("report", finished, "--out", tmp_path / "page.html")[0] == 0
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_a_study_file_in_place_of_its_folder_is_told_as_such(call, finished: Path, study: Path) -> None:
    code, _, errors = call("report", study)
    assert code == 2
    assert f"{study.name}, which is a file" in " ".join(errors.split())
    assert "corrupt" not in errors


def test_the_html_report_goes_to_the_study_folder(call, finished: Path) -> None:
    code, text, _ = call("report", finished, "--format", "html")
    assert code == 0
    assert str(finished / "report" / "report.html") in text


def test_an_unknown_format_and_an_unwritable_file_end_with_2(call, finished: Path, tmp_path: Path) -> None:
    assert call("report", finished, "--format", "pdf")[0] == 2
    code, _, errors = call("report", finished, "--format", "csv", "--out", tmp_path / "no" / "where.csv")
    assert code == 2
    assert "a file that can be written" in errors


def test_a_study_without_results_has_a_report_too(call, folder) -> None:
    assert call("report", folder.path)[0] == 0
