import inspect

import keras
import numpy as np
import pytest

from scalestudy.study.metrics import known
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.label_metrics import IoU
from scalestudy.tasks.metrics import OF_NUMBERS, metrics_of, sense_of
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine

PUBLIC = [name for name in dir(keras.metrics) if not name.startswith("_")]
CLASSES = [name for name in PUBLIC if inspect.isclass(getattr(keras.metrics, name))]
FUNCTIONS = [
    name
    for name in PUBLIC
    if inspect.isfunction(getattr(keras.metrics, name)) and name not in ("deserialize", "get", "serialize")
]


def sense(metrics, declared=None):
    """Return the direction of the quality."""
    found, senses = metrics_of(metrics, declared or {}, "t.py")
    return senses[next(iter(found))]


def made(name: str) -> keras.Metric:
    """Return Keras's metric of this class, with its required arguments."""
    cls = getattr(keras.metrics, name)
    needed = {
        "num_classes": 2, "target_class_ids": [1], "precision": 0.5, "recall": 0.5, "sensitivity": 0.5,
        "specificity": 0.5,
    }  # fmt: skip
    parameters = inspect.signature(cls.__init__).parameters
    return cls(**{key: value for key, value in needed.items() if key in parameters})


def test_each_of_keras_metrics_has_a_direction_by_its_class_and_by_its_name():
    for name in CLASSES:
        if name not in ("Mean", "MeanMetricWrapper", "Metric", "Sum"):
            metric = made(name)
            assert sense_of(metric).better, name
            assert known(metric.name) == known(name) == sense_of(metric), name
            told = getattr(metric, "_direction", None)  # if Keras states it
            assert told is None or {"up": "higher", "down": "lower"}[told] == known(name).better, name
    for name in FUNCTIONS:
        function = getattr(keras.metrics, name)
        assert sense_of(function).better == known(name).better is not None, name


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mse", ("lower", False)), ("MeanAbsoluteError", ("lower", False)), ("accuracy", ("higher", True))],
)
def test_a_name_means_what_keras_finds_by_it(name, expected):
    assert sense([name]) == expected


def test_losses_are_better_lower_also_where_a_metric_has_their_name():
    assert sense([keras.losses.cosine_similarity]).better == "lower"
    assert sense([keras.losses.dice]).better == "lower"
    assert sense([keras.metrics.CosineSimilarity()]).better == "higher"


def test_a_subclass_means_what_its_base_means():
    class Mine(keras.metrics.MeanSquaredError):
        pass

    assert sense({"accuracy": Mine()}) == ("lower", False)


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
    assert error.value.action == f'Add to the task file: better = {{"{name}": "higher"}}, or "lower".'


def test_what_the_task_file_says_goes_first():
    assert sense([accuracy], {"accuracy": "lower"}) == ("lower", None)
    assert sense(["mse"], {"mse": "higher"}).better == "higher"


def test_a_metric_may_say_it_itself():
    assert sense_of(IoU()) == ("higher", True)

    class Error(keras.metrics.Mean):
        better = "lower"

    assert sense([Error()]) == ("lower", None)


@pytest.mark.parametrize("declared", [{"acuracy": "higher"}, {"accuracy": "up"}, "higher", {"accuracy": []}])
def test_what_is_misspelt_is_refused(declared):
    with pytest.raises(UserError, match=r"`better` in t\.py") as error:
        metrics_of(["accuracy"], declared, "t.py")
    assert 'better = {"accuracy": "higher"}' in error.value.action


@pytest.mark.parametrize(("name", "meant"), [("iuo", "`iou`"), ("rmes", "`rmse`"), ("poisson_", "`poisson`")])
def test_a_misspelt_metric_is_named_with_the_one_that_was_meant(name, meant):
    with pytest.raises(UserError) as error:
        metrics_of([name], {}, "t.py")
    assert repr(name) in error.value.received
    assert meant in error.value.action


def test_only_the_quality_needs_a_direction():
    metrics, senses = metrics_of(["accuracy", Own(name="own"), "mse"], {}, "t.py")
    assert list(metrics) == list(senses) == ["accuracy", "own", "mse"]
    assert [each.better for each in senses.values()] == ["higher", None, "lower"]


def test_a_matrix_is_no_quality():
    with pytest.raises(UserError, match="confusion_matrix"):
        metrics_of(["confusion_matrix"], {}, "t.py", DataInfo("classes", (8, 8, 1), 3))


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_metrics_of_numbers_are_scikit_learns_whatever_the_batches(name):
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    reference = {"mae": mean_absolute_error, "rmse": root_mean_squared_error, "r2": r2_score}[name]
    rng = np.random.default_rng(0)
    true = rng.normal(100, 3, 57)
    predicted = true + rng.normal(0, 1, 57)
    for batches in (1, 19):
        metric = OF_NUMBERS[name]()
        for part in np.array_split(np.arange(57), batches):
            metric.update_state(true[part], predicted[part, None])
        assert float(metric.result()) == pytest.approx(reference(true, predicted), rel=1e-6)


def test_of_equal_targets_there_is_nothing_to_explain():
    metric = OF_NUMBERS["r2"]()
    metric.update_state(np.ones(3), np.zeros((3, 1)))
    assert float(metric.result()) == 0
