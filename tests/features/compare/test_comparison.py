import pytest

import synthetic
from comparison_studies import side
from scalestudy.analysis.findings import analyse
from scalestudy.features.compare.comparison import compare
from scalestudy.features.compare.sides import Side
from scalestudy.util.errors import UserError

SPEEDS = {"horovod": {1: 1.0, 2: 1.9, 4: 3.5}}


def row(comparison, quantity, workers=4, strategy="horovod"):
    (found,) = (
        each
        for each in comparison.rows
        if (each.quantity, each.key.workers, each.key.strategy)
        == (quantity, workers, strategy)
    )
    return found


@pytest.mark.parametrize(("base", "real"), [(120.0, True), (100.0, False)])
def test_a_faster_side_is_told_with_its_ratio_and_noise_is_no_difference(base, real):
    comparison = compare(side("a", SPEEDS), side("b", SPEEDS, base=base))
    found = row(comparison, "rate")
    assert found.change.low < base / 100 < found.change.high
    assert (found.real, found.paired) == (real, False)
    assert real or not any(each.real for each in comparison.rows)


@pytest.mark.parametrize(
    "more", [{}, {"launch.cpus_per_worker": 4, "data.source": "/elsewhere/indents"}]
)
def test_qualities_are_paired_by_seed_where_both_asked_for_the_same_but_for_speed(more):
    asked = {"task": "unet", "train.epochs": 6}
    comparison = compare(
        side("a", SPEEDS, asked=asked),
        side("b", SPEEDS, quality=0.94, asked=asked | more),
    )
    found = row(comparison, "quality")
    assert comparison.unpaired is None
    assert found.paired
    assert found.change.value == pytest.approx(-0.01, abs=0.002)
    assert found.real


def test_qualities_of_other_training_are_not_paired_and_hidden_by_what_seeds_share():
    other = side("b", SPEEDS, quality=0.94, asked={"task": "unet", "train.epochs": 8})
    comparison = compare(side("a", SPEEDS), other)
    found = row(comparison, "quality")
    assert not found.paired
    assert not found.real
    assert comparison.unpaired == "not alike are train.epochs"
    assert comparison.asked == (("train.epochs", "6", "8"),)


@pytest.mark.parametrize(
    ("other", "training", "quality", "rate"),
    [
        (
            {"epochs": 12},
            "samples processed: 6,000 and 12,000",
            "samples processed: 6,000 and 12,000",
            "",
        ),
        ({"metric": "accuracy"}, "", "metric: IoU and accuracy", ""),
        (
            {"oversubscribed": "8 workers on 2 cores"},
            "oversubscribed",
            "",
            "oversubscribed",
        ),
    ],
)
def test_what_cannot_be_compared_has_its_reason(other, training, quality, rate):
    comparison = compare(side("a", SPEEDS), side("b", SPEEDS, **other))
    for quantity, why in (
        ("training_seconds", training),
        ("quality", quality),
        ("rate", rate),
    ):
        found = row(comparison, quantity).why_not
        assert found.startswith(why) and bool(found) == bool(why)


def test_single_runs_are_compared_without_a_verdict():
    found = row(
        compare(side("a", SPEEDS, seeds=1), side("b", SPEEDS, base=150.0, seeds=1)),
        "rate",
    )
    assert found.change.value == pytest.approx(1.5, rel=0.1)
    assert found.chance is None
    assert not found.real


def test_other_tasks_are_refused_but_not_a_task_file_in_another_place():
    with pytest.raises(UserError, match=r"studies of one task.*cnn, unet"):
        compare(side("a", SPEEDS), side("b", SPEEDS, asked={"task": "cnn"}))
    paths = [{"task": f"/home/{name}/my_task.py"} for name in "ab"]
    assert compare(
        side("a", SPEEDS, asked=paths[0]), side("b", SPEEDS, asked=paths[1])
    ).rows


def test_other_models_are_refused():
    runs = [synthetic.run("horovod", n) for n in (1, 2)]
    larger = [
        type(run)(
            run.result.model_copy(update={"parameters": 7}),
            run.epochs,
            run.folder,
            run.ranks,
        )
        for run in runs
    ]
    with pytest.raises(UserError, match="studies of one model"):
        compare(Side("a", analyse("a", runs)), Side("b", analyse("b", larger)))
