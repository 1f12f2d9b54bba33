import numpy as np
import pytest

from gathered import Gathered, gathered, measured
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.histograms import BINS, REACH, Auroc, AveragePrecision, Ece, bins_of

pytestmark = pytest.mark.engine


@pytest.fixture
def reference():
    """scikit-learn's metrics, imported only here because the framework is imported without them."""
    from sklearn import metrics

    return metrics


@pytest.fixture
def ranked(reference):
    """Each metric with its scikit-learn function."""
    return (Auroc, reference.roc_auc_score), (AveragePrecision, reference.average_precision_score)


def in_bins(scores):
    return np.asarray(bins_of(np.asarray(scores, "float32"), BINS))


@pytest.mark.parametrize("kind", ["masks", "classes"])
def test_of_two_classes_they_are_scikit_learns_of_the_scores_in_bins_and_close_to_those_of_scores(
    kind, ranked
):
    given = gathered(kind, 2, 1, samples=30)
    true, probabilities = given.flat
    for metric, of_reference in ranked:
        found = measured(metric(2, given.data.ignore), given)
        assert found == pytest.approx(of_reference(true, in_bins(probabilities[:, 1])), rel=1e-12)
        assert found == pytest.approx(of_reference(true, probabilities[:, 1]), abs=0.001)


@pytest.mark.parametrize("kind", ["masks", "classes"])
def test_of_more_classes_each_is_ranked_against_the_rest(kind, ranked):
    given = gathered(kind, 4, seed=1)
    true, probabilities = given.flat
    for metric, of_reference in ranked:
        each = [of_reference(true == label, in_bins(probabilities[:, label])) for label in range(4)]
        ours = metric(4, given.data.ignore)
        assert measured(ours, given) == pytest.approx(np.mean(each), rel=1e-12)
        assert ours.parts() == pytest.approx(dict(enumerate(each)), rel=1e-12)


def test_a_class_of_one_kind_of_label_alone_is_left_out(ranked):
    given = gathered("classes", 4, seed=2, occurring=3)
    true, probabilities = given.flat
    for metric, of_reference in ranked:
        each = [of_reference(true == label, in_bins(probabilities[:, label])) for label in range(3)]
        ours = metric(4)
        assert measured(ours, given) == pytest.approx(np.mean(each), rel=1e-12)
        assert list(ours.parts()) == [0, 1, 2]


def test_scores_are_told_apart_to_a_256th_of_log_odds_also_next_to_0_and_1():
    assert BINS / (2 * REACH) == 256
    scores = np.concatenate([[0], np.logspace(-30, -1, 200), 1 - np.logspace(-1, -7, 200), [1]])
    places = in_bins(scores)
    assert places[0] == 0 and places[-1] == BINS - 1 and (np.diff(places) >= 0).all()
    odds = np.log(scores[1:-1].astype("float32")) - np.log1p(-scores[1:-1].astype("float32"))
    inside = np.abs(odds) < REACH - 1
    expected = (odds[inside] + REACH) * 256
    assert np.abs(places[1:-1][inside] + 0.5 - expected).max() <= 0.51  # the bin's centre, and rounding


def ece(confidence, right, bins=15):
    place = np.clip(np.ceil(confidence * np.float32(bins)) - 1, 0, bins - 1)  # ties are on edges
    confidence, total = confidence.astype(np.float64), 0.0
    for each in range(bins):
        inside = place == each
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return total


@pytest.mark.parametrize(("kind", "classes"), [("masks", 2), ("masks", 3), ("classes", 5)])
def test_the_calibration_error_is_that_of_its_definition(kind, classes):
    given = gathered(kind, classes, seed=4)
    true, probabilities = given.flat
    confidence = probabilities.astype("float32").max(1)
    expected = ece(confidence, given.predicted == true)
    assert measured(Ece(classes, given.data.ignore), given) == pytest.approx(expected, rel=1e-5)


def test_who_says_70_percent_and_is_right_in_70_percent_is_calibrated():
    targets = (np.arange(100) < 70).astype("int32")
    outputs = np.full((100, 1), 0.7, "float32")
    assert measured(Ece(), Gathered(DataInfo("classes", (1, 1, 1), 2), targets, outputs)) < 1e-6
    outputs[:] = 0.9
    assert measured(Ece(), Gathered(DataInfo("classes", (1, 1, 1), 2), targets, outputs)) == pytest.approx(
        0.2
    )
