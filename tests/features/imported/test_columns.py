"""What columns are, by their names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.errors import UserError
from scalestudy.features.imported.columns import NAMES, find, metric_name, qualities, squeezed


@pytest.mark.parametrize(
    ("written", "role"),
    [
        ("NGPUS", "workers"), ("# GPUs", "workers"), ("n", "workers"), ("World Size", "workers"),
        ("np", "workers"),
        ("mpiRanks", "workers"), ("Devices", "workers"),
        ("Time [min]", "seconds"), ("runtime_s", "seconds"), ("time_min", "seconds"), ("hours", "seconds"),
        ("training time (h)", "seconds"), ("time_avg[s]", "seconds"), ("seconds", "seconds"),
        ("time per epoch", "epoch_seconds"), ("epoch_time_ms", "epoch_seconds"),
        ("img/s", "throughput"), ("Images/s", "throughput"), ("samples/sec", "throughput"),
        ("images_per_second", "throughput"), ("img/s/gpu", "throughput"),
        ("GPU util", "gpu_percent"), ("Speed-up", "speedup"), ("lr", "learning_rate"),
        ("batch_size_per_gpu", "per_worker_batch"), ("Global batch", "global_batch"),
        ("val_loss", "validation_loss"),
    ],
)  # fmt: skip
def test_a_column_is_known_by_its_name_whatever_its_case_spaces_and_units(written: str, role: str):
    assert find([written], {})[role].name == written


@pytest.mark.parametrize(
    ("written", "unit"),
    [("time [min]", "min"), ("runtime_s", "s"), ("training_time (h)", "h"), ("hours", "hours"), ("time", "")],
)
def test_its_unit_is_in_its_name_or_unknown(written: str, unit: str):
    assert find([written], {})["seconds"].unit == unit


def test_a_rate_of_each_device_is_told_from_that_of_all():
    assert find(["images/s/gpu"], {})["throughput"].per_device
    assert not find(["images/s"], {})["throughput"].per_device


def test_two_columns_that_could_be_one_are_refused_with_the_way_out():
    with pytest.raises(UserError, match="--column workers=GPUs"):
        find(["GPUs", "ranks", "seconds"], {})
    assert find(["GPUs", "ranks", "seconds"], {"workers": "ranks"})["workers"].name == "ranks"


def test_our_own_word_goes_before_those_of_others():
    assert find(["workers", "gpus"], {})["workers"].name == "workers"


def test_a_column_that_was_said_and_is_not_there_is_refused():
    with pytest.raises(UserError, match="Correct --column seconds=NAME"):
        find(["a", "b"], {"seconds": "c"})


def test_metrics_over_validation_go_before_those_over_training():
    assert qualities(["accuracy", "loss", "val_accuracy", "val_loss"]) == ["val_accuracy"]
    assert qualities(["iou", "time"]) == ["iou"]
    assert [metric_name(name) for name in ("val_acc", "Accuracy", "val_IoU")] == [
        "accuracy",
        "accuracy",
        "iou",
    ]


@given(st.lists(st.text(max_size=12), max_size=8, unique=True))
def test_any_header_is_understood_or_refused(header: list[str]):
    try:
        found = find(header, {})
    except UserError:
        return
    assert found.keys() <= NAMES.keys()
    assert len({column.name for column in found.values()}) == len(found)


@given(st.text(max_size=30))
def test_squeezing_twice_is_squeezing_once(text: str):
    assert squeezed(squeezed(text)) == squeezed(text)
