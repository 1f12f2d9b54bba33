"""Metrics by name, compared with scikit-learn, divided over workers, and as the documentation shows them."""

import inspect
import re
from pathlib import Path

import keras
import numpy as np
import pytest

from distributed_evaluation import (
    EvaluatedSet,
    evaluated_set,
    measured,
    shares,
    sums_of,
    value_of,
)
from scalestudy.config.metric_senses import known
from scalestudy.config.objectives import LOSSES, METRICS, loss_terms, metric_term
from scalestudy.data.images.tiles import cut, cut_mask, tiles_of
from scalestudy.tasks.label_losses import cross_entropy, sum_of
from scalestudy.tasks.label_metrics import NAMED, IoU
from scalestudy.tasks.metrics import OF_NUMBERS, make_metric, metrics_of, sense_of
from scalestudy.tasks.task import DataInfo
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine

PUBLIC = [name for name in dir(keras.metrics) if not name.startswith("_")]
CLASSES = [name for name in PUBLIC if inspect.isclass(getattr(keras.metrics, name))]
FUNCTIONS = [
    name
    for name in PUBLIC
    if inspect.isfunction(getattr(keras.metrics, name))
    and name not in ("deserialize", "get", "serialize")
]


def sense(metrics, declared=None):
    """Return the direction of the quality."""
    found, senses = metrics_of(metrics, declared or {}, "t.py")
    return senses[next(iter(found))]


def made(name: str) -> keras.Metric:
    """Return Keras's metric of this class, with its required arguments."""
    cls = getattr(keras.metrics, name)
    needed = {
        "num_classes": 2,
        "target_class_ids": [1],
        "precision": 0.5,
        "recall": 0.5,
        "sensitivity": 0.5,
        "specificity": 0.5,
    }
    parameters = inspect.signature(cls.__init__).parameters
    return cls(**{key: value for key, value in needed.items() if key in parameters})


def test_each_of_keras_metrics_has_a_direction_by_its_class_and_by_its_name():
    for name in CLASSES:
        if name not in ("Mean", "MeanMetricWrapper", "Metric", "Sum"):
            metric = made(name)
            assert sense_of(metric).better, name
            assert known(metric.name) == known(name) == sense_of(metric), name
            told = getattr(metric, "_direction", None)  # if Keras states it
            assert (
                told is None
                or {"up": "higher", "down": "lower"}[told] == known(name).better
            ), name
    for name in FUNCTIONS:
        function = getattr(keras.metrics, name)
        assert sense_of(function).better == known(name).better is not None, name


def accuracy(targets, outputs):
    return outputs[:, 0]


class Own(keras.metrics.Mean):
    pass


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: accuracy, "accuracy"),
        (lambda: Own(name="auc"), "auc"),
        (lambda: keras.metrics.Sum(name="loss"), "loss"),
    ],
)
def test_of_an_own_metric_the_direction_is_asked_whatever_its_name(make, name):
    metric = make()
    with pytest.raises(UserError) as error:
        metrics_of([metric], {}, "my_task.py")
    assert f"'{name}' in my_task.py" in error.value.expected
    assert (
        error.value.action
        == f'Add to the task file: better = {{"{name}": "higher"}}, or "lower".'
    )


class Error(keras.metrics.Mean):
    better = "lower"


class Mine(keras.metrics.MeanSquaredError):
    pass


@pytest.mark.parametrize(
    ("metric", "declared", "expected"),
    [
        ("mse", None, ("lower", False)),
        ("MeanAbsoluteError", None, ("lower", False)),
        ("accuracy", None, ("higher", True)),
        ("mse", "higher", ("higher", False)),  # what the task file says goes first
        (accuracy, "lower", ("lower", None)),
        (
            keras.losses.cosine_similarity,
            None,
            ("lower", False),
        ),  # a loss with the name of a metric
        (keras.losses.dice, None, ("lower", False)),
        (keras.metrics.CosineSimilarity, None, ("higher", False)),
        (Mine, None, ("lower", False)),  # as its base
        (Error, None, ("lower", None)),  # it says it itself
        (IoU, None, ("higher", True)),
    ],
)
def test_the_direction_is_that_of_the_metric_of_its_base_or_of_the_task_file(
    metric, declared, expected
):
    made = metric() if inspect.isclass(metric) else metric
    assert sense({"it": made}, {"it": declared} if declared else None)[:2] == expected


@pytest.mark.parametrize(
    "declared", [{"acuracy": "higher"}, {"accuracy": "up"}, "higher", {"accuracy": []}]
)
def test_what_is_misspelt_is_refused(declared):
    with pytest.raises(UserError, match=r"`better` in t\.py") as error:
        metrics_of(["accuracy"], declared, "t.py")
    assert 'better = {"accuracy": "higher"}' in error.value.action


@pytest.mark.parametrize(
    ("name", "meant"), [("iuo", "`iou`"), ("rmes", "`rmse`"), ("poisson_", "`poisson`")]
)
def test_a_misspelt_metric_is_named_with_the_one_that_was_meant(name, meant):
    with pytest.raises(UserError) as error:
        metrics_of([name], {}, "t.py")
    assert repr(name) in error.value.received
    assert meant in error.value.action


def test_only_the_quality_needs_a_direction():
    metrics, senses = metrics_of(["accuracy", Own(name="own"), "mse"], {}, "t.py")
    assert list(metrics) == list(senses) == ["accuracy", "own", "mse"]
    assert [each.better for each in senses.values()] == ["higher", None, "lower"]


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_metrics_of_numbers_are_scikit_learns_whatever_the_batches(name):
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    reference = {
        "mae": mean_absolute_error,
        "rmse": root_mean_squared_error,
        "r2": r2_score,
    }[name]
    rng = np.random.default_rng(0)
    true = rng.normal(100, 3, 57)
    predicted = true + rng.normal(0, 1, 57)
    for batches in (1, 19):
        metric = OF_NUMBERS[name]()
        for part in np.array_split(np.arange(57), batches):
            metric.update_state(true[part], predicted[part, None])
        assert float(metric.result()) == pytest.approx(
            reference(true, predicted), rel=1e-6
        )


def test_of_equal_targets_there_is_nothing_to_explain():
    metric = OF_NUMBERS["r2"]()
    metric.update_state(np.ones(3), np.zeros((3, 1)))
    assert float(metric.result()) == 0


@pytest.fixture
def reference():
    """scikit-learn's metrics, imported only here because the framework is imported without them."""
    from sklearn import metrics

    return metrics


SETS = {
    "masks of 2": evaluated_set("masks", 2),
    "masks of 4": evaluated_set("masks", 4),
    "one class missing": evaluated_set("masks", 4, occurring=3),
    "classes of 2": evaluated_set("classes", 2),
    "classes of 6": evaluated_set("classes", 6),
    "one label": evaluated_set("classes", 3, occurring=1),
}
AVERAGED = {"precision": "precision_score", "recall": "recall_score", "f1": "f1_score"}


def named(text, given):
    return make_metric(
        metric_term("top_k(k=1)" if text == "top_k" else text), given.data
    )


@pytest.mark.parametrize("text", [*METRICS, "top_k(k=2)"])
def test_sums_of_workers_give_what_the_whole_set_gives_however_it_is_divided(text):
    for number, (name, given) in enumerate(SETS.items()):
        if text == "top_k(k=2)" and given.data.classes == 2:
            continue
        metric, count = named(text, given), len(given.targets)
        whole = sums_of(metric, given.targets, given.outputs)
        expected = value_of(metric, whole)
        assert np.isfinite(expected) and 0 <= expected <= 1, (name, expected)
        for workers in (2, 5):
            parts = [
                sums_of(metric, given.targets[share], given.outputs[share])
                for share in shares(count, workers, seed=10 * number + workers)
            ]
            added = [np.sum(each, axis=0) for each in zip(*parts, strict=True)]
            assert all(
                np.allclose(one, two, rtol=1e-12)
                for one, two in zip(added, whole, strict=True)
            )
            assert value_of(metric, added) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", SETS)
def test_precision_recall_and_f1_are_scikit_learns(name, reference):
    given = SETS[name]
    (true, _), found = given.flat, given.predicted
    for metric, score in AVERAGED.items():
        how = "binary" if given.data.classes == 2 else "macro"
        expected = getattr(reference, score)(true, found, average=how, zero_division=0)
        assert measured(named(metric, given), given) == pytest.approx(expected)


@pytest.mark.parametrize("name", SETS)
def test_accuracies_are_scikit_learns(name, reference):
    given = SETS[name]
    (true, probabilities), found = given.flat, given.predicted
    assert measured(named("accuracy", given), given) == pytest.approx(
        reference.accuracy_score(true, found)
    )
    if given.data.classes > 2:
        below = (
            probabilities > np.take_along_axis(probabilities, true[:, None], 1)
        ).sum(1)
        assert measured(named("top_k(k=2)", given), given) == pytest.approx(
            (below < 2).mean()
        )


@pytest.mark.parametrize("name", SETS)
def test_iou_and_dice_of_each_class_are_scikit_learns(name, reference):
    given = SETS[name]
    (true, _), found = given.flat, given.predicted
    occurring = np.union1d(true, found)
    for text, of_reference, ones in (
        ("iou", reference.jaccard_score, 1),
        ("dice", reference.f1_score, 0),
    ):
        metric = named(text, given)
        measured(metric, given)
        parts = metric.parts()
        assert list(parts) == occurring.tolist()
        for label, value in parts.items():
            expected = of_reference(true == label, found == label)
            # The published IoU adds one pixel to both; there is no other difference.
            size = ((true == label) | (found == label)).sum()
            assert value == pytest.approx((expected * size + ones) / (size + ones))


def test_top_k_of_all_classes_is_refused():
    with pytest.raises(UserError, match="k below the 3 classes"):
        make_metric(metric_term("top_k(k=3)"), DataInfo("classes", (8, 8, 1), 3))


def test_nothing_to_be_found_and_nothing_found_is_no_nan():
    nothing = evaluated_set("masks", 2)
    nothing.targets[:] = 0
    nothing.outputs[:] = 0
    expected = dict.fromkeys(METRICS, 1.0)
    assert {
        name: measured(named(name, nothing), nothing) for name in METRICS
    } == expected
    nothing.targets[:] = 255  # no pixel counts either
    for name in METRICS:
        assert np.isfinite(measured(named(name, nothing), nothing))


def test_each_name_is_known_and_is_made_again_from_its_config():
    assert NAMED.names() == list(METRICS)
    for name in METRICS:
        metric = named(name, SETS["masks of 4"])
        again = type(metric).from_config(metric.get_config())
        assert again.get_config() == metric.get_config()
        assert measured(again, SETS["masks of 4"]) == measured(
            metric, SETS["masks of 4"]
        )


@pytest.mark.parametrize("classes", [2, 3])
def test_no_pixel_is_counted_in_int32_which_gpus_leave_to_the_host(classes):
    """Nor by the loss. Only an argmax returns int32 on the GPU; other operations use host memory."""
    import tensorflow as tf

    metric, losses = (
        IoU(classes, ignore=255),
        cross_entropy(DataInfo("masks", (8, 8, 1), classes, 255)),
    )
    start = [tf.constant(variable.numpy()) for variable in metric.variables]

    @tf.function
    def computed(true, outputs):
        with tf.GradientTape() as tape:
            tape.watch(outputs)
            total = tf.reduce_sum(losses(true, outputs))
        return metric.stateless_update_state(start, true, outputs), tape.gradient(
            total, outputs
        )

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
    metric.update_state(
        np.array([[[0, 1, 0]]], "uint8"), np.full((1, 1, 3, 3), 1 / 3, "float32")
    )
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
    model = keras.Model(
        inputs, keras.layers.Conv2D(1, 3, padding="same", activation="sigmoid")(seen)
    )
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


PAGE = (
    Path(__file__).parents[2] / "docs" / "reference" / "losses-and-metrics.md"
).read_text()
TRUE = np.array([[[1, 1, 0, 0, 1, 1, 1, 0]]], "uint8")
OUTPUTS = np.array([[[0.9, 0.8, 0.2, 0.1, 0.6, 0.4, 0.15, 0.2]]], "float32")[..., None]
EXAMPLE = EvaluatedSet(DataInfo("masks", (1, 8, 1), 2), TRUE, OUTPUTS)
PARTS = dict(
    zip(("loss", "metric"), PAGE.split("## Losses")[1].split("## Metrics"), strict=True)
)
ROWS = [
    (kind, *row)
    for kind, part in PARTS.items()
    for row in re.findall(r"^\| `([^`]+)` \|.*\| ([0-9.]+) \|$", part, flags=re.M)
]


def computed(kind, text):
    if kind == "loss":
        return float(sum_of(loss_terms(text), EXAMPLE.data)(TRUE, OUTPUTS)[0])
    return measured(make_metric(metric_term(text), EXAMPLE.data), EXAMPLE)


def test_every_loss_and_every_metric_that_is_a_number_has_one():
    named = {(kind, text.split("(")[0]) for kind, text, _ in ROWS}
    numbers = set(METRICS) - {"top_k"}
    assert named == {("loss", name) for name in LOSSES} | {
        ("metric", name) for name in numbers
    }


def test_each_number_is_what_is_computed():
    for kind, text, written in ROWS:
        assert f"{computed(kind, text):.4f}" == written, text
