"""Metrics of classes, counted over the whole set."""

import keras
import numpy as np
import pytest

from gathered import Gathered, gathered, measured
from scalestudy.data.images.tiles import cut, cut_mask, tiles_of
from scalestudy.tasks.label_metrics import BINS, REACH, Auroc, AveragePrecision, Ece, IoU, bins_of
from scalestudy.tasks.task import DataInfo

pytestmark = pytest.mark.engine


def test_iou_is_that_of_the_published_study():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, (4, 8, 8)).astype("uint8")
    predicted = rng.random((4, 8, 8, 1)).astype("float32")
    metric = IoU()
    metric.update_state(true, predicted)
    p = predicted[..., 0] >= 0.5
    expected = ((true * p).sum() + 1) / (true.sum() + p.sum() - (true * p).sum() + 1)
    assert float(metric.result()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_no_pixel_is_counted_in_int32_which_gpus_leave_to_the_host(classes):
    """Nor by the loss. Only an argmax returns int32 on the GPU; other operations use host memory."""
    import tensorflow as tf

    from scalestudy.tasks.task import DataInfo
    from scalestudy.tasks.unet import loss

    metric, losses = IoU(classes, ignore=255), loss(DataInfo("masks", (8, 8, 1), classes, 255))
    start = [tf.constant(variable.numpy()) for variable in metric.variables]

    @tf.function
    def computed(true, outputs):
        with tf.GradientTape() as tape:
            tape.watch(outputs)
            total = tf.reduce_sum(losses(true, outputs))
        return metric.stateless_update_state(start, true, outputs), tape.gradient(total, outputs)

    true = tf.zeros((2, 8, 8), tf.uint8)
    outputs = tf.fill((2, 8, 8, 1 if classes == 2 else classes), 0.5)
    graph = computed.get_concrete_function(true, outputs).graph
    pixels = [
        (operation.type, tensor.shape)
        for operation in graph.get_operations()
        for tensor in operation.outputs
        if tensor.dtype == tf.int32 and (tensor.shape.rank or 0) > 1
    ]
    assert {kind for kind, _ in pixels} <= ({"ArgMax"} if classes > 2 else set())


def test_ties_are_the_first_classs():
    metric = IoU(3)
    metric.update_state(np.array([[[0, 1, 0]]], "uint8"), np.full((1, 1, 3, 3), 1 / 3, "float32"))
    assert np.asarray(metric.predicted).tolist() == [3.0, 0.0, 0.0]


def test_it_counts_beyond_what_float32_can():
    metric = IoU()
    for variable in metric.variables:
        variable.assign(np.full(variable.shape, 2.0**24))
    metric.update_state(np.ones((1, 1, 1), "uint8"), np.ones((1, 1, 1, 1), "float32"))
    assert float(metric.intersection[0]) == 2.0**24 + 1


def test_iou_over_tiles_is_that_over_whole_images_of_a_model_that_sees_no_further_than_their_margin():
    keras.utils.set_random_seed(0)
    draw = np.random.default_rng(2)
    image = draw.random((41, 67, 1)).astype("float32")
    mask = draw.integers(0, 2, (41, 67)).astype("uint8")
    inputs = keras.Input((None, None, 1))
    seen = keras.layers.Conv2D(2, 3, padding="same", activation="relu")(inputs)
    model = keras.Model(inputs, keras.layers.Conv2D(1, 3, padding="same", activation="sigmoid")(seen))
    whole, tiled = IoU(), IoU(ignore=255)
    whole.update_state(mask[None], model(image[None]))
    for size, overlap, equal in (((16, 16), 4, True), ((21, 17), 0, False)):
        tiled.reset_state()
        tiles = tiles_of((41, 67), size, overlap)
        parts = np.stack([cut(image, tile, size) for tile in tiles])
        targets = np.stack([cut_mask(mask, tile, size) for tile in tiles])
        tiled.update_state(targets, model(parts))
        assert float(np.sum(tiled.true)) == float(np.sum(whole.true))
        assert (float(tiled.result()) == float(whole.result())) is equal


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
