"""A damaged record: its point is not trained again, and each command says what to do."""

import json
import os
from pathlib import Path

import pytest

RUN = "points/native-w1-s0/run-1"


def another_schema(file: Path) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": 99}))


DAMAGES = {"truncated": lambda file: os.truncate(file, 60), "of another schema": another_schema}


@pytest.fixture
def done(call, study: Path, launcher) -> Path:
    """The results folder of a study that has run."""
    assert call("run", study, "--no-report")[0] == 0
    launcher.ran = []
    return study.parent / "studies" / "study"


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["result.json", "point.json"])
def test_no_command_trains_it_again_and_each_says_so(
    call, study: Path, launcher, done: Path, damage: str, name: str
) -> None:
    DAMAGES[damage](done / RUN / name)
    before = {file: file.read_bytes() for file in (done / "points").rglob("*.json*")}
    code, _, errors = call("run", study, "--no-report")
    assert (code, launcher.ran) == (1, [])
    said = " ".join(errors.split())
    for part in ("native-w1-s0 is corrupt, and left alone", name, "`scalestudy status --verify"):
        assert part in said
    for command in (["status", done], ["report", done]):
        code, text, _ = call(*command)
        text = " ".join(text.split())
        assert code == 0
        assert "corrupt" in text and name in text
    told = json.loads(call("report", done, "--format", "json")[1])
    states = {each["name"]: each["state"] for each in told["points"]}
    assert states == {"native-w1-s0": "corrupt", "native-w2-s0": "done"}
    assert {file: file.read_bytes() for file in (done / "points").rglob("*.json*")} == before
