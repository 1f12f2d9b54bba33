"""`scalestudy report` and `demo`."""

import csv
import json
import os
from io import StringIO
from pathlib import Path

import pytest

from published import column
from scalestudy.features.imported.published import published_findings
from scalestudy.store.run_folder import RunFolder

EPOCHS = "\n".join(
    f'{{"epoch": {epoch}, "steps": 9, "samples": 9, "train_seconds": 9, "elapsed_training_seconds": 9,'
    ' "validation": {"accuracy": 0.987654}}'
    for epoch in (1, 2)
)


@pytest.fixture
def finished(call, study: Path, launcher) -> Path:
    call("run", study, "--no-report")
    return study.parent / "studies" / "study"


def test_the_report_comes_as_a_table_csv_and_json(call, finished: Path) -> None:
    code, text, _ = call("report", finished)
    assert code == 0
    assert text.splitlines()[1].split()[:2] == ["strategy", "n"]
    rows = list(
        csv.DictReader(StringIO(call("report", finished, "--format", "csv")[1]))
    )
    assert [row["workers"] for row in rows] == ["1", "2"]
    document = json.loads(call("report", finished, "--format", "json")[1])
    assert [row["workers"] for row in document["rows"]] == [1, 2]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("epochs.jsonl", EPOCHS),
        ("ranks.jsonl", '{"rank": 0, "host": "elsewhere"}'),
        ("gallery.json", "{}"),
    ],
)
def test_records_of_a_finished_run_that_were_altered_are_named_and_not_shown(
    call, folder_of_runs: Path, name: str, content: str
) -> None:
    run = next(folder_of_runs.glob("points/*-w2-*/run-1"))
    (run / name).write_text("recorded\n")
    RunFolder(run).write_checksums()
    (run / name).write_text(content + "\n")
    code, text, _ = call("report", folder_of_runs)
    assert code == 0
    assert f"Records of {run.parent.name} are left out: {name}" in " ".join(
        text.split()
    )
    shown = call("report", folder_of_runs, "--format", "json")[1]
    assert "0.987654" not in shown and "elsewhere" not in shown


def test_the_decision_is_printed_and_with_verbose_how_it_was_measured(
    call, finished: Path
) -> None:
    brief, verbose = (
        call("report", finished, *words)[1] for words in ((), ("--verbose",))
    )
    assert len(brief.splitlines()) < len(verbose.splitlines()) / 2
    notes = json.loads(call("report", finished, "--format", "json")[1])["notes"]
    assert all(
        note in " ".join(verbose.replace("- ", "").split()) for note in notes[:2]
    )
    assert not any(note in " ".join(brief.split()) for note in notes)


@pytest.mark.slow
def test_it_ends_with_the_page_and_with_how_to_write_it_where_it_is_not_there_or_old(
    call, finished: Path
) -> None:
    page = finished / "report" / "report.html"
    assert (
        call("report", finished)[1]
        .splitlines()[-1]
        .endswith(f"{finished} --format html")
    )
    call("report", finished, "--format", "html")
    assert call("report", finished)[1].splitlines()[-1] == f"Page: {page}"
    os.utime(page, (0, 0))  # by whatever clock
    assert call("report", finished)[1].splitlines()[-1] == f"Page: {page}"
    table = page.with_name("table.json")
    table.write_text(table.read_text().replace('"native"', '"horovod"'))
    assert call("report", finished)[1].splitlines()[-1].endswith("--format html")


def test_the_target_quality_is_the_users(call, finished: Path) -> None:
    rows = json.loads(
        call("report", finished, "--format", "json", "--target-quality", "0.25")[1]
    )["rows"]
    assert [row["target_quality"] for row in rows] == [0.25, 0.25]
    code, _, errors = call("report", finished, "--target-quality", "nan")
    assert code == 2 and "--target-quality" in errors


@pytest.mark.slow
def test_the_report_goes_to_a_file_on_request(
    call, finished: Path, tmp_path: Path
) -> None:
    for form in ("csv", "json", "html", "table"):
        file = tmp_path / f"out.{form}"
        assert call("report", finished, "--format", form, "--out", file)[0] == 0
        assert file.stat().st_size > 0


def test_an_unknown_format_and_an_unwritable_file_end_with_2(
    call, finished: Path, tmp_path: Path
) -> None:
    assert call("report", finished, "--format", "pdf")[0] == 2
    (tmp_path / "file").touch()
    code, _, errors = call(
        "report", finished, "--format", "csv", "--out", tmp_path / "file" / "where.csv"
    )
    assert code == 2
    assert "where.csv" in errors


def test_a_study_without_results_has_a_report_too(call, folder) -> None:
    assert call("report", folder.path)[0] == 0


def test_the_table_of_the_demo_is_the_published_one():
    rows = {(row.strategy, row.workers): row for row in published_findings().rows}
    for strategy in ("native", "horovod"):
        seconds, iou = (
            column("u_net", f"{strategy}_seconds"),
            column("u_net", f"{strategy}_iou"),
        )
        assert {key[1] for key in rows if key[0] == strategy} == set(seconds)
        for workers in seconds:
            row = rows[strategy, workers]
            assert row.speed.steady.value == pytest.approx(
                seconds[1] / seconds[workers]
            )
            assert row.quality.value == iou[workers]
    assert len(rows) == 16


def test_the_demo_advises_six_workers_of_horovod_and_calls_that_provisional():
    findings = published_findings()
    decision = findings.advice.decision
    assert (decision.kind, decision.choice.strategy, decision.choice.workers) == (
        "ask",
        "horovod",
        6,
    )
    assert set(decision.provisional) == {
        "single-run",
        "quality-unclear",
        "faster-may-learn",
    }
    worse = {key for key, verdict in decision.verdicts.items() if verdict.seems_worse}
    assert {12, 14} <= {key.workers for key in worse if key.strategy == "native"}
    assert findings.advice.open_questions


@pytest.mark.slow
def test_the_demo_writes_one_page_and_says_where(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    code, text, errors = call("demo")
    assert (code, errors) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["published-unet.html"]
    assert "Page: published-unet.html" in text.splitlines()
    assert "10.5281/zenodo.7639190" in text
    page = (tmp_path / "published-unet.html").read_text()
    assert all(
        part in page for part in ("10.5281/zenodo.7639190", "Not settled", "0.486")
    )


@pytest.mark.parametrize("name", ["page.pdf", "table.csv"])
def test_the_demo_writes_nothing_but_a_page(call, tmp_path: Path, name: str):
    assert call("demo", "--out", tmp_path / name)[0] == 2
    assert not list(tmp_path.iterdir())


@pytest.fixture
def opened(monkeypatch):
    """Addresses opened in a browser that is there."""
    addresses: list[str] = []
    monkeypatch.setenv("BROWSER", "a-browser")
    monkeypatch.setattr(
        "webbrowser.open", lambda address: not addresses.append(address)
    )
    return addresses


def test_a_run_has_a_live_page_that_is_opened_and_leads_to_the_report_at_its_end(
    call, study: Path, launcher, opened
) -> None:
    assert call("run", study, "--open", "--no-report")[0] == 0
    page = study.parent / "studies" / "study" / "report" / "live.html"
    assert opened == [page.resolve().as_uri()]
    text = page.read_text()
    assert "2 done" in text and "data-live" not in text


@pytest.mark.slow
def test_without_a_browser_the_path_of_the_page_is_printed(
    call, finished: Path, monkeypatch
) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    code, text, errors = call("report", finished, "--open")
    page = str(finished / "report" / "report.html")
    assert code == 0 and page in text and page in errors
    assert call("report", finished, "--open", "--format", "csv")[0] == 2


def test_a_folder_of_studies_has_an_index(call, finished: Path) -> None:
    code, text, _ = call("report", finished.parent)
    assert code == 0 and "2 of 2" in text
    assert call("report", finished.parent, "--format", "html")[0] == 0
    assert "2 of 2" in (finished.parent / "index.html").read_text()
