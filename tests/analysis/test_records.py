"""Many runs are read by several processes, and found as by one."""

import sys
from pathlib import Path

import pytest

from scalestudy.analysis import records
from scalestudy.study.records import EpochRecord
from scalestudy.study.run_folder import RunFolder


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    found = []
    for number in range(5):
        run = RunFolder(tmp_path / f"run-{number + 1}")
        run.path.mkdir()
        run.append_epoch(
            EpochRecord(
                epoch=1, steps=1, samples=1, learning_rate=0.1, loss=float(number), train_seconds=1.0,
                input_seconds=0.0, elapsed_training_seconds=1.0,
            )
        )  # fmt: skip
        found.append(run.path)
    (found[3] / "epochs.jsonl").write_text("{")
    return found


def test_other_processes_find_what_one_finds_in_the_same_order(folders, monkeypatch):
    alone = records.read_all(folders)
    monkeypatch.setattr(records, "MANY", 2)
    monkeypatch.setattr(records, "AT_ONCE", 2)
    monkeypatch.setattr(records, "granted", lambda: [0, 1])
    assert records.read_all(folders) == alone
    assert [len(each.epochs) for each in alone] == [1, 1, 1, 0, 1]
    assert alone[3].wrong[0].startswith("epochs.jsonl, line 1")


def test_what_an_ended_process_leaves_is_read_here(folders, monkeypatch):
    alone = records.read_all(folders)
    monkeypatch.setattr(records, "MANY", 2)
    monkeypatch.setattr(records, "AT_ONCE", 2)
    monkeypatch.setattr(records, "granted", lambda: [0, 1])
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert records.read_all(folders) == alone
