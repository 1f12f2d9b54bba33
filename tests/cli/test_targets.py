"""No command overwrites a study's records or the files that it reads."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

RESULT = "points/native-w1-s0/run-1/result.json"
COMMANDS = {
    "report": ("report", "{study}", "--format", "json", "--out"),
    "report --from": ("report", "--from", "{file}", "--format", "csv", "--out"),
    "compare": ("compare", "{study}", "{study}", "--format", "json", "--out"),
    "proposal": ("proposal", "{study}", "--panel", "csc", "--format", "html", "--out"),
    "data show": ("data", "show", "digits", "--out"),
    "model predict": ("model", "predict", "{study}", "images", "--force", "--out"),
    "model samples": ("model", "samples", "{study}", "--out"),
    "model export": ("model", "export", "{study}", "--force", "--out"),
    "check": ("check", "--out"),
    "init": ("init", "--force"),
    "site init": ("site", "init", "--force", "--out"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_record_of_a_study_is_no_target(call, folder_of_runs: Path, name: str) -> None:
    words = [word.format(study=folder_of_runs, file=folder_of_runs / RESULT) for word in COMMANDS[name]]
    before = {file: file.read_bytes() for file in folder_of_runs.rglob("*") if file.is_file()}
    ending = ".html" if name in ("data show", "model samples") else ""
    for target in ("study.json", "study.toml", RESULT, f"new{ending}"):
        assert call(*words, folder_of_runs / target)[0] == 2, target
    assert {file: file.read_bytes() for file in folder_of_runs.rglob("*") if file.is_file()} == before


def test_the_study_file_and_what_is_imported_are_no_targets(call, folder_of_runs: Path, study: Path) -> None:
    table = study.parent / "table.csv"
    assert call("report", study, "--out", table)[0] == 0
    for words in (("report", study, "--out", study), ("report", "--from", table, "--out", table)):
        assert call(*words, "--format", "csv")[0] == 2
    (folder_of_runs / "report").mkdir()
    assert call("report", study, "--out", folder_of_runs / "report" / "table.csv")[0] == 0


@pytest.mark.parametrize("name", [*[*COMMANDS][:5], "demo", "share", "model samples", "init", "site init"])
def test_an_existing_file_is_replaced_only_by_force(call, folder_of_runs: Path, tmp_path: Path, name) -> None:
    commands = COMMANDS | {"demo": ("demo", "--out"), "share": ("report", "{study}", "--share")}
    words = [word.format(study=folder_of_runs, file=folder_of_runs / RESULT) for word in commands[name]]
    old = tmp_path / "old.html"
    old.write_text("of the user")
    code, _, said = call(*(word for word in words if word != "--force"), old)
    assert code == 2 and str(old) in said
    assert old.read_text() == "of the user"
    if "--force" in words:
        assert call(*words, old)[0] == 0
        assert old.read_text() != "of the user"


def test_a_link_is_followed_and_a_device_written_to(call, folder_of_runs: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    link = tmp_path / "table.csv"
    link.symlink_to(tmp_path / "kept" / "table.csv")
    assert call("report", folder_of_runs, "--out", link)[0] == 0
    assert link.is_symlink() and "workers" in (tmp_path / "kept" / "table.csv").read_text()
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text)
        assert call("report", folder_of_runs, "--out", pipe)[0] == 0
        assert read.result() == link.read_text()
    assert pipe.is_fifo()
    (tmp_path / "full.csv").symlink_to("/dev/full")
    assert call("report", folder_of_runs, "--out", tmp_path / "full.csv")[0] == 2
    assert Path("/dev/full").is_char_device()


def test_a_target_that_cannot_be_written_is_refused_before_the_work(
    call, tmp_path: Path, monkeypatch
) -> None:
    def work() -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("scalestudy.features.imported.gather.published_findings", work)
    (tmp_path / "file").touch()
    for target in ("/proc/new/page.html", tmp_path / "file" / "page.html"):
        code, _, said = call("demo", "--out", target)
        assert code == 2 and f"{target}:" in said
