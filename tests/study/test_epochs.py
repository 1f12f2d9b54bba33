"""Epochs as columns are the records that were written, and damaged lines are named and left out."""

import json
import os
import pickle

import pytest

from scalestudy.seals import sealed
from scalestudy.study.epochs import read_epochs
from scalestudy.study.records import EpochRecord
from scalestudy.study.run_folder import RunFolder


def epoch(number: int, **changes: object) -> EpochRecord:
    values = {
        "epoch": number, "steps": 2, "samples": 16, "learning_rate": 0.1, "loss": 1.0 / number,
        "train_seconds": 1.0, "input_seconds": 0.0, "elapsed_training_seconds": float(number),
        "validation": {"loss": 1.0, "accuracy": 0.5} if number % 2 else {}, "resumed": number == 3,
    }  # fmt: skip
    return EpochRecord(**{**values, **changes})


@pytest.fixture
def run(tmp_path) -> RunFolder:
    for number in range(1, 8):
        RunFolder(tmp_path).append_epoch(epoch(number))
    return RunFolder(tmp_path)


def test_they_are_those_that_were_written_also_in_another_process(run):
    epochs, wrong = read_epochs(run.path)
    assert wrong == [] and len(epochs) == 7
    for found in (epochs, pickle.loads(pickle.dumps(epochs))):
        assert list(found) == [epoch(number) for number in range(1, 8)] == run.epochs()
        assert found[-1] == epoch(7) and found[2:4] == (epoch(3), epoch(4))
    with pytest.raises(IndexError):
        epochs[7]


def test_one_value_of_all_is_had_without_making_records(run):
    epochs, _ = read_epochs(run.path)
    assert epochs.column("epoch") == [1, 2, 3, 4, 5, 6, 7]
    assert epochs.column("validation", "loss") == [1.0, None, 1.0, None, 1.0, None, 1.0]
    assert epochs.column("nothing") == [None] * 7


def test_losses_that_are_no_numbers_are_read_like_others(run):
    run.append_epoch(epoch(8, loss=float("nan"), validation={}))
    epochs, wrong = read_epochs(run.path)
    losses = epochs.column("loss")
    assert wrong == [] and losses[:7] == [1.0 / number for number in range(1, 8)] and losses[7] != losses[7]
    assert epochs[7].loss != epochs[7].loss


def test_a_damaged_line_is_named_by_its_number_and_left_out(run):
    file = run.path / "epochs.jsonl"
    lines = file.read_bytes().splitlines()
    lines[1] = lines[1].replace(b"16", b"17")
    file.write_bytes(b"\n".join(lines) + b'\n{"epoch": 9')
    epochs, wrong = read_epochs(run.path)
    assert epochs.column("epoch") == [1, 3, 4, 5, 6, 7]
    assert [text.split(":")[0] for text in wrong] == ["epochs.jsonl, line 2", "epochs.jsonl, line 8"]


@pytest.mark.parametrize(
    "other",
    [
        {"loss": None},
        {"loss": "high"},
        {"epoch": 2.5},
        {"validation": 3},
        {"schema_version": 9},
        {"steps": ...},
    ],
)
def test_a_line_that_another_version_sealed_in_another_form_is_named_and_left_out(run, other):
    table = {key: value for key, value in (epoch(8).model_dump() | other).items() if value is not ...}
    with open(run.path / "epochs.jsonl", "a") as file:
        file.write(sealed(json.dumps(table), indent=None) + "\n")
    epochs, wrong = read_epochs(run.path)
    assert len(list(epochs)) == 7 == len(run.epochs())
    assert [text.split(":")[0] for text in wrong] in (
        ["epochs.jsonl, line 8"],
        ["epochs.jsonl, line 8 is of schema 9, and this version knows 1"],
    )
    assert [found.damaged for _, found in run.found_epochs()] == [False] * 7 + [True]


def test_lines_of_older_versions_without_checksum_count(run):
    with open(run.path / "epochs.jsonl", "a") as file:
        file.write(epoch(8).model_dump_json() + "\n")
    epochs, wrong = read_epochs(run.path)
    assert wrong == [] and epochs[7] == epoch(8) and epochs.column("epoch")[-1] == 8
    assert pickle.loads(pickle.dumps(epochs)) == run.epochs()


def test_a_file_that_is_none_is_said_to_be_so(tmp_path):
    assert list(read_epochs(tmp_path)[0]) == []
    (tmp_path / "epochs.jsonl").mkdir()
    assert read_epochs(tmp_path)[1] == ["epochs.jsonl cannot be read: it is a folder"]
    (tmp_path / "epochs.jsonl").rmdir()
    os.symlink("epochs.jsonl", tmp_path / "epochs.jsonl")
    assert "cannot be read" in read_epochs(tmp_path)[1][0]
