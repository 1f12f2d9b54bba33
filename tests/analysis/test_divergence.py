import math

import pytest

import synthetic
from scalestudy.analysis.divergence import failures, scatter
from scalestudy.analysis.runs import sense_of
from scalestudy.study.metrics import Sense

NAN, INF = math.nan, math.inf


def failed(*runs):
    return failures(runs, sense_of(runs), 3)


def test_a_model_that_learned_has_not_failed():
    assert failed(synthetic.run(quality=0.9, chance=0.1)) == []
    assert failed(synthetic.run(quality=0.02, metric="mse", chance=0.09)) == []


@pytest.mark.parametrize(
    ("metric", "quality", "chance"),
    [
        ("accuracy", 0.113, 0.1135),
        ("accuracy", 0.128, 0.1135),  # within the scatter of 1000 labels
        ("accuracy", 0.99, 0.99),
        ("iou", 0.0, 0.05),
        ("mse", 0.25, 0.19),
        ("mse", 0.188, 0.19),
    ],
)
def test_no_better_than_one_answer_for_everything_is_chance(metric, quality, chance):
    found = failed(
        *(synthetic.run(seed=seed, metric=metric, quality=quality, chance=chance) for seed in range(2))
    )
    assert [(failed.seed, failed.kind) for failed in found] == [(0, "chance"), (1, "chance")]


def test_a_few_correct_ones_of_a_thousand_classes_are_more_than_chance():
    assert failed(synthetic.run(metric="accuracy", quality=0.02, chance=0.001)) == []


def test_the_scatter_of_labels_shrinks_with_their_number_and_never_leaves_the_range():
    share = Sense("higher", bounded=True)
    assert scatter(0.1, 360, share) == pytest.approx(2 * math.sqrt(0.09 / 360))
    assert scatter(0.1, 10**9, share) == pytest.approx(0.002)
    assert scatter(0.999, 10**9, share) < 0.001
    assert scatter(-4.0, 100, Sense("higher", bounded=False)) == pytest.approx(0.08)


def test_older_folders_that_do_not_know_their_chance_are_left_in_peace():
    assert failed(synthetic.run(quality=0.0)) == []


def test_a_metric_of_unknown_direction_has_no_chance():
    assert failed(synthetic.run(metric="badness", quality=0.1, chance=0.1)) == []


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ((0.7, 0.6, NAN), "the loss is not finite at the end"),
        ((0.7, 0.6, INF), "the loss is not finite at the end"),
        ((0.7, 0.6, 5e3), "the training loss grew from 0.7 to 5e+03"),
        ((-1.0, -2.0, -0.5), "the training loss grew from -1 to -0.5"),
    ],
)
def test_a_loss_that_grew_or_is_no_number_is_divergence(losses, words):
    found = failed(synthetic.run(epochs=3, losses=losses), synthetic.run(seed=1))
    assert [(failed.seed, failed.kind, failed.sentence) for failed in found] == [
        (0, "diverged", f"diverged: {words}")
    ]


@pytest.mark.parametrize("losses", [(0.7, 9.0, 0.6), (0.020, 0.020, 0.021), (NAN, 0.7, 0.6)])
def test_a_loss_that_came_back_or_scatters_is_none(losses):
    assert failed(synthetic.run(epochs=3, losses=losses)) == []


def row(*qualities, **options):
    return failed(
        *(synthetic.run(seed=seed, quality=quality, **options) for seed, quality in enumerate(qualities))
    )


def test_one_collapsed_seed_of_seven_is_found():
    found = row(0.95, 0.94, 0.95, 0.40, 0.95, 0.96, 0.94)
    assert [(failed.seed, failed.kind) for failed in found] == [(3, "collapsed")]
    assert [failed.seed for failed in row(0.95, 0.54, 0.95, chance=0.2)] == [1]


def test_one_seed_at_chance_is_not_hidden_by_the_mean_of_the_others():
    found = row(0.95, 0.1, 0.95, metric="accuracy", chance=0.1)
    assert [(failed.seed, failed.kind) for failed in found] == [(1, "chance")]


def test_a_seed_that_is_only_worse_has_not_collapsed():
    assert row(0.95, 0.80, 0.90) == []
    assert row(0.1, 0.3, 0.1, metric="mse") == []
