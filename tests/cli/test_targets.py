"""No command overwrites a study's records or the files that it reads."""

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
    "check": ("check", "--topology", "--no-measure", "--format", "json", "--out"),
    "launch": ("launch", "train.py", "--logs"),
    "init": ("init", "--force"),
    "site init": ("site", "init", "--force", "--out"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_record_of_a_study_is_no_target(call, folder_of_runs: Path, name: str) -> None:
    words = [word.format(study=folder_of_runs, file=folder_of_runs / RESULT) for word in COMMANDS[name]]
    before = {file: file.read_bytes() for file in folder_of_runs.rglob("*") if file.is_file()}
    if name == "launch":
        words = ["launch", "--logs", folder_of_runs / "points", "train.py"]
        assert call(*words)[0] == 2
    else:
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
