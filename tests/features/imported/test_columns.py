"""The meaning of the columns of imported tables, and the options of their reader."""

import pytest

from scalestudy.features.imported.columns import (
    NAMES,
    VAGUE,
    ImportedColumn,
    find_columns,
    metric_name,
    options_of,
    quality_column,
)
from scalestudy.util.errors import UserError


@pytest.mark.parametrize(
    ("written", "role"),
    [
        ("Images/sec", "throughput"),
        ("img/s", "throughput"),
        ("Samples/sec", "throughput"),
        ("images_per_second", "throughput"),
        ("tokens/s", "throughput"),
        ("images/sec/GPU", "throughput_per_worker"),
        ("Throughput per GPU", "throughput_per_worker"),
        ("#GPUs", "workers"),
        ("# GPUs", "workers"),
        ("GPUs", "workers"),
        ("ngpus", "workers"),
        ("nodes", "workers"),
        ("time_per_epoch", "epoch_seconds"),
        ("epoch_time", "epoch_seconds"),
        ("Time (s)", "training_seconds"),
    ],
)
def test_names_that_people_use_need_no_option(written: str, role: str):
    assert find_columns([written], {}) == {role: ImportedColumn(written)}


def test_a_vague_name_counts_only_where_no_other_does():
    found = find_columns(["nodes", "gpus", "time", "training_time"], {})
    assert (found["workers"].name, found["training_seconds"].name) == (
        "gpus",
        "training_time",
    )
    assert find_columns(["img/s", "img/s/GPU"], {}) == {
        "throughput": ImportedColumn("img/s")
    }
    assert find_columns(["img/s"], {"throughput_per_worker": "img/s"}).keys() == {
        "throughput_per_worker"
    }


def test_every_role_is_found_by_each_of_its_names_whatever_case_and_spaces():
    for role, names in NAMES.items():
        for name in (*names, *VAGUE.get(role, ())):
            written = name.replace("_", " ").title()
            assert find_columns([written], {}) == {role: ImportedColumn(written)}


@pytest.mark.parametrize(
    ("written", "factor"),
    [
        ("seconds", 1),
        ("Training time [min]", 60),
        ("training_time(h)", 3600),
        ("training_time_min", 60),
        ("training_hours", 3600),
        ("time_ms", 0.001),
        ("Time in minutes", 60),
    ],
)
def test_a_time_has_its_unit_in_brackets_else_seconds(written: str, factor: float):
    assert find_columns([written], {})["training_seconds"].factor == factor


@pytest.mark.parametrize(
    ("header", "given", "action"),
    [
        (["gpus", "workers"], {}, "--column workers=gpus"),
        (["a"], {"training_seconds": "c"}, "Correct --column training_seconds=NAME."),
        (["training time [parsec]"], {}, "Rename or convert that column."),
    ],
)
def test_a_column_that_is_ambiguous_missing_or_of_no_unit_is_refused(
    header, given, action
):
    with pytest.raises(UserError) as refused:
        find_columns(header, given)
    assert action in refused.value.action


def test_the_users_word_goes_before_the_name():
    assert (
        find_columns(["gpus", "ranks"], {"workers": "ranks"})["workers"].name == "ranks"
    )
    assert (
        find_columns(["T [min]"], {"training_seconds": "T [min]"})[
            "training_seconds"
        ].factor
        == 60
    )


@pytest.mark.parametrize(
    ("header", "metric", "quality"),
    [
        ("accuracy loss val_accuracy val_loss", None, "val_accuracy"),
        ("iou time", None, "iou"),
        ("time loss val_loss mae", None, "mae"),
        ("time loss val_loss", None, "val_loss"),
        ("time loss", None, None),
        ("loss val_mae val_acc", None, "val_acc"),
        ("mae val_mae", "mae", "val_mae"),
    ],
)
def test_the_quality_is_the_known_metric_over_the_validation_set(
    header, metric, quality
):
    assert quality_column(header.split(), metric) == quality


def test_a_quality_that_is_unclear_is_refused():
    assert [metric_name(name) for name in ("val_accuracy", "IoU")] == [
        "accuracy",
        "iou",
    ]
    with pytest.raises(UserError, match="--metric iou"):
        quality_column(["iou", "dice"], None)
    with pytest.raises(UserError, match="Correct --metric"):
        quality_column(["iou"], "dice")


@pytest.mark.parametrize(
    "said", [{"columns": ["workers"]}, {"columns": ["nodes=N"]}, {"margin": "x"}]
)
def test_options_out_of_form_are_refused(said):
    with pytest.raises(UserError):
        options_of(**said)
