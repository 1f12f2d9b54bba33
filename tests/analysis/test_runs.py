"""Epochs as columns equal the written records; damaged lines are reported by number and skipped."""

import json
import os

import pytest

from scalestudy.analysis.runs import epoch_values, key_of, order, read_epochs
from scalestudy.store.records import EpochRecord
from scalestudy.store.run_folder import RunFolder


def epoch(number: int, **changes: object) -> EpochRecord:
    values = {
        "epoch": number,
        "steps": 2,
        "samples": 16,
        "learning_rate": 0.1,
        "loss": 1.0 / number,
        "train_seconds": 1.0,
        "input_seconds": 0.0,
        "elapsed_training_seconds": float(number),
        "validation": {"loss": 1.0, "accuracy": 0.5} if number % 2 else {},
        "resumed": number == 3,
    }
    return EpochRecord(**{**values, **changes})


@pytest.fixture
def run(tmp_path) -> RunFolder:
    for number in range(1, 8):
        RunFolder(tmp_path).append_epoch(epoch(number))
    return RunFolder(tmp_path)


def test_they_are_those_that_were_written(run):
    epochs, wrong = read_epochs(run.path)
    assert wrong == [] and len(epochs) == 7
    assert list(epochs) == [epoch(number) for number in range(1, 8)] == run.epochs()
    assert epochs[-1] == epoch(7) and epochs[2:4] == (epoch(3), epoch(4))
    with pytest.raises(IndexError):
        epochs[7]
    assert epoch_values(epochs, "epoch") == [1, 2, 3, 4, 5, 6, 7]
    assert epoch_values(epochs, "validation", "loss") == [
        1.0,
        None,
        1.0,
        None,
        1.0,
        None,
        1.0,
    ]
    assert (
        epoch_values(epochs, "nothing")
        == epoch_values(epochs, "validation", "nothing")
        == [None] * 7
    )


def test_epochs_without_any_validation_are_read(tmp_path):
    RunFolder(tmp_path).append_epoch(epoch(2))
    epochs, wrong = read_epochs(tmp_path)
    assert (list(epochs), wrong) == ([epoch(2)], [])
    assert epoch_values(epochs, "validation", "loss") == [None]


def test_losses_that_are_not_finite_are_read_like_others(run):
    run.append_epoch(epoch(8, loss=float("nan"), validation={"loss": float("inf")}))
    epochs, wrong = read_epochs(run.path)
    losses = epoch_values(epochs, "loss")
    assert (
        wrong == []
        and losses[:7] == [1.0 / number for number in range(1, 8)]
        and losses[7] != losses[7]
    )
    assert epochs[7].loss != epochs[7].loss
    assert (
        epoch_values(epochs, "validation", "loss")[-1]
        == epochs[7].validation["loss"]
        == float("inf")
    )


def test_a_last_line_that_is_still_being_written_is_left_out(run):
    with open(run.path / "epochs.jsonl", "a") as file:
        file.write('{"epoch": 8, "steps": 2')
    epochs, wrong = read_epochs(run.path)
    assert (len(epochs), wrong) == (7, [])


@pytest.mark.parametrize(
    "change",
    [
        {"samples": None},
        {"epoch": 2.5},
        {"validation": 3},
        {"validation": {"loss": []}},
        {"steps": ...},
    ],
    ids=str,
)
def test_a_damaged_line_is_named_by_its_number_and_left_out(run, change):
    table = {
        key: value
        for key, value in (epoch(8).model_dump() | change).items()
        if value is not ...
    }
    with open(run.path / "epochs.jsonl", "a") as file:
        file.write(
            json.dumps(table) + "\n" + "noise\n" + epoch(9).model_dump_json() + "\n"
        )
    epochs, wrong = read_epochs(run.path)
    assert epoch_values(epochs, "epoch") == [1, 2, 3, 4, 5, 6, 7, 9]
    assert list(epochs) == run.epochs()
    assert [text.split(":")[0] for text in wrong] == [
        "epochs.jsonl, line 8",
        "epochs.jsonl, line 9",
    ]


def test_a_file_that_is_none_is_named(tmp_path):
    assert list(read_epochs(tmp_path)[0]) == []
    (tmp_path / "epochs.jsonl").mkdir()
    assert len(read_epochs(tmp_path)[1]) == 1
    (tmp_path / "epochs.jsonl").rmdir()
    os.symlink("epochs.jsonl", tmp_path / "epochs.jsonl")
    assert len(read_epochs(tmp_path)[1]) == 1


def test_rows_are_in_order_of_swept_numbers_and_a_number_too_long_for_a_float_is_last():
    values = (10**400, "8 MiB", 2.5, 1)
    keys = [key_of("native", 1, {"train.xla": value}) for value in values]
    in_order = [key.swept["train.xla"] for key in sorted(keys, key=order)]
    assert in_order == [1, 2.5, "8 MiB", 10**400]
