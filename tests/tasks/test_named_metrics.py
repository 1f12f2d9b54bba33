"""Named metrics, compared with scikit-learn on gathered predictions, and divided over workers."""

import numpy as np
import pytest

from gathered import gathered, measured, shares, sums_of, value_of
from scalestudy.study.objectives import METRICS, OF_MASKS, metric_term
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.metrics import NAMED, named_metric, sense_of
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine


@pytest.fixture
def reference():
    """scikit-learn's metrics, imported only here because the framework is imported without them."""
    from sklearn import metrics

    return metrics


SETS = {
    "masks of 2": gathered("masks", 2),
    "masks of 4": gathered("masks", 4),
    "one class missing": gathered("masks", 4, occurring=3),
    "classes of 2": gathered("classes", 2),
    "classes of 6": gathered("classes", 6),
    "one label": gathered("classes", 3, occurring=1),
}
AVERAGED = {"precision": "precision_score", "recall": "recall_score", "f1": "f1_score"}


def made(text, given):
    return named_metric(metric_term("top_k(k=1)" if text == "top_k" else text), given.data)


def test_every_metric_that_a_study_may_name_is_made():
    assert list(NAMED) == list(METRICS)
    for text in METRICS:
        metric = made(text, SETS["masks of 4"])
        assert metric.name.startswith(text)
        assert sense_of(metric).better in ("higher", "lower") and sense_of(metric).bounded


@pytest.mark.parametrize("text", [*METRICS, "f1(average=micro)", "top_k(k=2)", "object_ap(connectivity=4)"])
def test_sums_of_workers_give_what_the_whole_set_gives_however_it_is_divided(text):
    for number, (name, given) in enumerate(SETS.items()):
        if text.split("(")[0] in OF_MASKS and given.data.kind != "masks":
            continue
        if text == "top_k(k=2)" and given.data.classes == 2:
            continue
        metric, count = made(text, given), len(given.targets)
        whole = sums_of(metric, given.targets, given.outputs)
        expected = value_of(metric, whole)
        assert np.isfinite(expected) and 0 <= expected <= 1, (name, expected)
        for workers in (2, 5):
            parts = [
                sums_of(metric, given.targets[share], given.outputs[share])
                for share in shares(count, workers, seed=10 * number + workers)
            ]
            added = [np.sum(each, axis=0) for each in zip(*parts, strict=True)]
            assert all(np.allclose(one, two, rtol=1e-12) for one, two in zip(added, whole, strict=True))
            assert value_of(metric, added) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_precision_recall_and_f1_are_scikit_learns(name, average, reference):
    given = SETS[name]
    (true, _), found = given.flat, given.predicted
    for metric, score in AVERAGED.items():
        how = "binary" if given.data.classes == 2 and average == "macro" else average
        expected = getattr(reference, score)(true, found, average=how, zero_division=0)
        assert measured(made(f"{metric}(average={average})", given), given) == pytest.approx(expected)


@pytest.mark.parametrize("name", SETS)
def test_accuracies_and_the_confusion_matrix_are_scikit_learns(name, reference):
    given = SETS[name]
    (true, probabilities), found = given.flat, given.predicted
    classes = range(given.data.classes)
    assert measured(made("accuracy", given), given) == pytest.approx(reference.accuracy_score(true, found))
    matrix = made("confusion_matrix", given)
    assert measured(matrix, given) == pytest.approx(reference.accuracy_score(true, found))
    assert np.array_equal(matrix.matrix(), reference.confusion_matrix(true, found, labels=classes))
    # scikit-learn leaves classes without true samples out of the mean, with a warning.
    recalls = reference.recall_score(true, found, labels=np.unique(true), average="macro")
    assert measured(made("balanced_accuracy", given), given) == pytest.approx(recalls)
    if given.data.classes > 2:
        below = (probabilities > np.take_along_axis(probabilities, true[:, None], 1)).sum(1)
        assert measured(made("top_k(k=2)", given), given) == pytest.approx((below < 2).mean())


@pytest.mark.parametrize("name", SETS)
def test_iou_and_dice_of_each_class_are_scikit_learns(name, reference):
    given = SETS[name]
    (true, _), found = given.flat, given.predicted
    occurring = np.union1d(true, found)
    for text, of_reference, ones in (
        ("iou", reference.jaccard_score, 1),
        ("dice", reference.f1_score, 0),
    ):
        metric = made(text, given)
        measured(metric, given)
        parts = metric.parts()
        assert list(parts) == occurring.tolist()
        for label, value in parts.items():
            expected = of_reference(true == label, found == label)
            # The published IoU adds one pixel to both; there is no other difference.
            size = ((true == label) | (found == label)).sum()
            assert value == pytest.approx((expected * size + ones) / (size + ones))


def test_the_brier_score_of_two_classes_is_scikit_learns_and_of_more_half_the_sum_of_squares(reference):
    for name in ("masks of 2", "classes of 2"):
        given = SETS[name]
        true, probabilities = given.flat
        expected = reference.brier_score_loss(true, probabilities[:, 1])
        assert measured(made("brier", given), given) == pytest.approx(expected, rel=1e-6)
    given = SETS["classes of 6"]
    true, probabilities = given.flat
    expected = ((probabilities - np.eye(6)[true]) ** 2).sum(1).mean() / 2
    assert measured(made("brier", given), given) == pytest.approx(expected, rel=1e-6)


def test_top_k_of_all_classes_is_refused():
    with pytest.raises(UserError, match="k below the 3 classes"):
        named_metric(metric_term("top_k(k=3)"), DataInfo("classes", (8, 8, 1), 3))


def test_metrics_of_masks_are_refused_where_there_are_none():
    for name in OF_MASKS:
        with pytest.raises(UserError, match=f"masks.* for the metric {name}.*Choose among iou, dice"):
            named_metric(metric_term(name), DataInfo("classes", (8, 8, 1), 3))


def test_nothing_to_be_found_and_nothing_found_is_no_nan():
    nothing = gathered("masks", 2)
    nothing.targets[:] = 0
    nothing.outputs[:] = 0
    expected = dict.fromkeys(METRICS, 1.0) | {
        "auroc": 0.5,
        "average_precision": 0.0,
        "ece": 0.0,
        "brier": 0.0,
    }
    assert {name: measured(made(name, nothing), nothing) for name in METRICS} == expected
    nothing.targets[:] = 255  # no pixel counts either
    for name in METRICS:
        assert np.isfinite(measured(made(name, nothing), nothing))


def test_each_is_made_again_from_its_config():
    for name in METRICS:
        metric = made(name, SETS["masks of 4"])
        again = type(metric).from_config(metric.get_config())
        assert again.get_config() == metric.get_config()
        assert measured(again, SETS["masks of 4"]) == measured(metric, SETS["masks of 4"])
