"""`scalestudy advise` and `proposal`."""

import json
from pathlib import Path

import pytest

import synthetic
from scalestudy.analysis.findings import read_study
from scalestudy.store.study_folder import StudyFolder
from synthetic_result import result_of


@pytest.fixture
def measured(tmp_path):
    runs = synthetic.seeded((1, 2, 4), ("native",))
    synthetic.write(tmp_path / "made", "made", runs)
    return tmp_path / "made"


def test_json_has_the_reports_decision(measured, call):
    code, text, _ = call("advise", measured, "--format", "json")
    assert code == 0
    record, decision = (
        json.loads(text),
        read_study(StudyFolder.open(measured)).advice.decision,
    )
    assert record["kind"] == decision.kind
    assert record["best"]["workers"] == decision.choice.workers
    assert record["best"]["cost_efficiency"]["value"] == pytest.approx(
        decision.price.efficiency.value
    )


def test_what_the_site_bills_can_be_said(measured, call):
    _, text, _ = call("advise", measured, "--bill", "node", "--format", "json")
    assert json.loads(text)["cost_unit"] == "node-hours"


@pytest.mark.parametrize(
    "options",
    [
        ["--efficiency", "1.5"],
        ["--efficiency", "150%"],
        ["--efficiency", "much"],
        ["--deadline", "soon"],
        ["--most", "0"],
        ["--most", "4"],
    ],
)
def test_goals_that_mean_nothing_are_refused(measured, call, options):
    assert call("advise", measured, *options)[0] == 2


def test_an_efficiency_may_be_a_percentage(measured, call):
    answers = [
        call("advise", measured, "--efficiency", share, "--format", "json")[1]
        for share in ("0.8", "80 %")
    ]
    assert [json.loads(answer)["cost_efficiency_target"] for answer in answers] == [
        0.8,
        0.8,
    ]


@pytest.mark.slow
def test_the_newest_study_here_is_meant_where_none_is_named(
    measured, call, monkeypatch
):
    monkeypatch.chdir(measured.parent)
    assert call("advise")[0] == 0


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
    code, _, errors = call(
        "proposal", done, "--panel", "csc", "--out", tmp_path / "page.md"
    )
    assert code == 0
    assert (
        str(tmp_path / "page.md") in errors and str(tmp_path / "page-figures") in errors
    )
    assert "page-figures/" in (tmp_path / "page.md").read_text()
    assert (
        call("proposal", done, "--panel", "csc", "--out", tmp_path / "page.html")[0]
        == 0
    )
    assert "</html>" in (tmp_path / "page.html").read_text()


def test_a_study_without_results_has_a_page_of_what_is_missing(
    call, folder: StudyFolder
) -> None:
    code, text, _ = call("proposal", folder.path, "--panel", "hlrs")
    assert code == 0
    assert "no run has finished" in text and "We request" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--panel", "cs"), "csc, cscs"),
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


def test_a_file_that_cannot_be_written_ends_with_2(
    call, done: Path, tmp_path: Path
) -> None:
    code, _, errors = call(
        "proposal", done, "--panel", "csc", "--out", tmp_path / "no" / "page.md"
    )
    assert code == 2
    assert "a file that can be written" in errors


def test_the_planned_training_is_that_of_the_options_or_of_the_study_file(
    call, measured
):
    def seconds(*options):
        code, text, _ = call("advise", measured, "--format", "json", *options)
        assert code == 0
        return json.loads(text)["best"]["seconds"]["value"]

    short, long, longer = (
        seconds(*options) for options in ((), ("--epochs", "600"), ("--epochs", "1200"))
    )
    assert short < long < longer
    more = seconds("--epochs", "600", "--samples", "1000000")
    assert more > 10 * long


def test_lengths_are_planned_for_runs_that_recorded_their_epochs_only(call, tmp_path):
    (tmp_path / "times.csv").write_text("workers,seconds\n1,100\n2,60\n")
    code, _, errors = call("report", "--from", tmp_path / "times.csv", "--epochs", "10")
    assert code == 2
    assert "--epochs" in errors
