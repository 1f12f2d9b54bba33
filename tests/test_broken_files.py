"""A study with every kind of broken, missing, newer and foreign file: each is named, the rest continues."""

import json
import os
import random
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from made_study import make_study
from scalestudy.cli import main

POINTS = [
    f"{strategy}-w{workers}-s0-learning_rate=0.0001"
    for strategy in ("mirrored", "horovod")
    for workers in (1, 2, 4, 8, 16)
]


def truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def later(file: Path) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": 99}))


def folder_instead(file: Path) -> None:
    file.unlink()
    file.mkdir()


def loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


BROKEN = {
    0: ("result.json", truncated, "corrupt", "Invalid JSON"),
    1: ("result.json", empty, "corrupt", "Invalid JSON"),
    2: ("result.json", later, "corrupt", "newer version"),
    3: ("result.json", folder_instead, "corrupt", "it is a folder"),
    4: ("result.json", loop, "corrupt", "cannot be read"),
    5: ("point.json", pipe, "corrupt", "no regular file"),
}
"""By place of the point: the broken record, how it is broken, the state, and a part of the reason."""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_study(
        tmp_path_factory.mktemp("made") / "study", runs=10, epochs=4, seeds=1
    ).path
    runs = [folder / "points" / name / "run-1" for name in POINTS]
    for place, (name, breaks, _, _) in BROKEN.items():
        breaks(runs[place] / name)
    shutil.rmtree(runs[6])
    (runs[7] / "epochs.jsonl").unlink()
    lines = (runs[8] / "epochs.jsonl").read_text().splitlines()
    (runs[8] / "epochs.jsonl").write_text(
        "\n".join([lines[0], lines[1][:50], *lines[2:]]) + "\n"
    )
    (folder / "points" / "notes.txt").write_text("mine")
    (folder / "points" / POINTS[9] / "run-x").mkdir()
    (folder / "points" / POINTS[9] / "run-0").write_text("no folder")
    (runs[9] / "unknown.bin").write_bytes(random.Random(1).randbytes(100))
    (runs[9] / "ranks.jsonl").write_text("{\n")
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert not caught.value.code, capsys.readouterr().err
    return " ".join(capsys.readouterr().out.split())


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "2000")


def test_status_names_each_with_its_state_and_goes_on(study, capsys):
    record = json.loads(
        "{" + said(capsys, "status", study, "--format", "json").partition("{")[2]
    )
    points = {point["name"]: point for point in record["points"]}
    for place, (name, _, state, words) in BROKEN.items():
        result = points[POINTS[place]]
        assert (
            result["state"],
            name in result["reason"],
            words in result["reason"],
        ) == (
            state,
            True,
            True,
        ), result
    assert points[POINTS[6]]["state"] == "missing"
    assert [points[name]["state"] for name in POINTS[7:]] == ["done"] * 3


def test_the_report_names_each_and_counts_the_sound_ones(study, capsys):
    text = said(capsys, "report", study, "--format", "markdown").replace("\\", "")
    for place, (name, _, state, words) in BROKEN.items():
        assert text.count(f"{POINTS[place]} is {state} and not counted: {name}") == 1
        assert words in text
        assert f"{POINTS[place]}: {name}" not in text
    assert f"1 run is missing: {POINTS[6]}." in text
    rows = said(capsys, "report", study, "--format", "csv")
    assert [f"horovod,{workers}," in rows for workers in (2, 4, 8, 16)] == [
        False,
        True,
        True,
        True,
    ]
    assert (
        f"Records of {POINTS[7]} are left out: epochs.jsonl holds 0 of 4 epochs."
        in text
    )
    for place, name in {8: "epochs.jsonl", 9: "ranks.jsonl"}.items():
        assert (
            f"Records of {POINTS[place]} are left out: {name} differs from its checksum"
            in text
        )


def test_a_file_that_may_not_be_read_is_named(study, capsys, monkeypatch):
    real = os.open
    locked = study / "points" / POINTS[9] / "run-1" / "result.json"

    def refuse(path, *rest, **named):
        if Path(path) == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    text = said(capsys, "report", study, "--format", "markdown").replace("\\", "")
    assert (
        f"{POINTS[9]} is corrupt and not counted: result.json cannot be read: Permission denied"
        in text
    )
