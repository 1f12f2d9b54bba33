import math
from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.divergence import chance_tolerance, failures
from scalestudy.analysis.runs import quality_sense
from scalestudy.analysis.wording.verdicts import describe_failure
from scalestudy.config.metric_senses import Sense

NAN, INF = math.nan, math.inf


def failed(*runs):
    """Seed and kind of each run that failed."""
    return [
        (failure.seed, failure.kind) for failure in failures(runs, quality_sense(runs))
    ]


def row(*qualities, **options):
    return failed(
        *(
            synthetic.run(seed=seed, quality=quality, **options)
            for seed, quality in enumerate(qualities)
        )
    )


@pytest.mark.parametrize(
    ("metric", "quality", "chance", "learned"),
    [
        ("accuracy", 0.113, 0.1135, False),
        ("accuracy", 0.128, 0.1135, False),  # within the scatter of 1000 labels
        (
            "accuracy",
            0.02,
            0.001,
            True,
        ),  # a few correct samples with a thousand classes
        ("accuracy", 0.99, 0.99, False),
        ("iou", 0.0, 0.05, False),
        ("iou", 0.0, None, True),  # chance level unknown
        ("mse", 0.25, 0.19, False),
        ("mse", 0.188, 0.19, False),
        ("mse", 0.02, 0.09, True),
        ("badness", 0.1, 0.1, True),  # direction unknown
    ],
)
def test_no_better_than_one_answer_for_everything_is_chance(
    metric, quality, chance, learned
):
    kinds = row(quality, quality, metric=metric, chance=chance)
    assert kinds == ([] if learned else [(0, "chance"), (1, "chance")])


def test_the_scatter_of_labels_shrinks_with_their_number_and_never_leaves_the_range():
    share = Sense("higher", bounded=True)
    assert chance_tolerance(0.1, 360, share) == pytest.approx(2 * math.sqrt(0.09 / 360))
    assert chance_tolerance(0.1, 10**9, share) == pytest.approx(0.002)
    assert chance_tolerance(0.999, 10**9, share) < 0.001
    assert chance_tolerance(-4.0, 100, Sense("higher", bounded=False)) == pytest.approx(
        0.08
    )


@pytest.mark.parametrize(
    ("losses", "diverged"),
    [
        ((0.7, 0.6, NAN), True),
        ((0.7, 0.6, INF), True),
        ((0.7, 0.6, 5e3), True),
        ((-1.0, -2.0, -0.5), True),
        ((0.7, 9.0, 0.6), False),  # recovered
        ((0.020, 0.020, 0.021), False),
        ((NAN, 0.7, 0.6), False),
    ],
)
def test_a_loss_that_grew_or_is_no_number_is_divergence(losses, diverged):
    kinds = failed(synthetic.run(epochs=3, losses=losses), synthetic.run(seed=1))
    assert kinds == ([(0, "diverged")] if diverged else [])


def test_divergence_tells_the_epoch_and_the_weight_where_it_began():
    lost = synthetic.run(epochs=4, losses=(0.7, NAN, NAN, NAN))
    epochs = [
        epoch.model_copy(update={"not_finite": "0/kernel"}) for epoch in lost.epochs[1:]
    ]
    named = replace(lost, epochs=(lost.epochs[0], *epochs))
    for run, weight in (
        (lost, ""),
        (named, "; the first weight that is not is 0/kernel"),
    ):
        (failure,) = failures([run], quality_sense([run]))
        assert (
            describe_failure(failure.evidence, 3)
            == f"diverged: the loss is not finite from epoch 2 on{weight}"
        )


def test_one_seed_that_collapsed_or_stands_at_chance_is_not_hidden_by_the_mean_of_the_others():
    assert row(0.95, 0.94, 0.95, 0.40, 0.95, 0.96, 0.94) == [(3, "collapsed")]
    assert row(0.95, 0.54, 0.95, chance=0.2) == [(1, "collapsed")]
    assert row(0.95, 0.1, 0.95, metric="accuracy", chance=0.1) == [(1, "chance")]
    assert row(0.95, 0.80, 0.90) == row(0.1, 0.3, 0.1, metric="mse") == [], "only worse"
