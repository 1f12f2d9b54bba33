import keras
import numpy as np
import pytest

from scalestudy.losses import bce, dice
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.task_loss import loss_of, resolved_loss, summed
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine

DATA = DataInfo("classes", (8, 8, 1), 3)
WEIGHTED = DataInfo("classes", (8, 8, 1), 3, class_weights=(1.0, 2.0, 4.0))
TRUE = np.array([0, 1, 2])
OUTPUTS = np.array([[0.5, 0.25, 0.25], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]], "float32")
PLAIN = -np.log([0.5, 0.6, 0.8])


def own(targets, outputs):
    return keras.ops.mean(outputs, axis=-1)


def values(given, data=DATA):
    return np.asarray(loss_of(given, data, "my_task.py")(TRUE, OUTPUTS))


@pytest.mark.parametrize(
    "given",
    [
        "cross_entropy",
        "sparse_categorical_crossentropy",
        keras.losses.SparseCategoricalCrossentropy,
        keras.losses.SparseCategoricalCrossentropy(),
        bce,
        lambda data: bce(data, label_smoothing=0.0),
        lambda data: "cross_entropy",
        lambda data: keras.losses.SparseCategoricalCrossentropy(),
    ],
)
def test_a_formula_a_name_of_keras_a_loss_of_keras_and_a_function_of_the_data_give_losses_of_samples(given):
    assert values(given) == pytest.approx(PLAIN, rel=1e-5)


def test_a_formula_is_ours_also_where_keras_has_a_loss_of_that_name():
    assert values("dice").shape == (3,)  # Keras's is one value for the batch
    assert values("dice") == pytest.approx(values(dice))
    assert values("bce + 2*dice") == pytest.approx(PLAIN + 2 * values(dice), rel=1e-5)


def test_class_weights_reach_formulas_and_functions_of_the_data():
    for given in ("cross_entropy", bce, lambda data: bce(data, label_smoothing=0.0), lambda data: "bce"):
        assert values(given, WEIGHTED) == pytest.approx(PLAIN * [1, 2, 4], rel=1e-5)
    assert values("bce + dice", WEIGHTED) == pytest.approx(PLAIN * [1, 2, 4] + values("dice"), rel=1e-5)


@pytest.mark.parametrize("given", ["dice + jaccard", "mse", keras.losses.MeanSquaredError(), own])
def test_class_weights_are_refused_by_a_loss_that_takes_none(given):
    with pytest.raises(UserError, match=r"takes class weights \(bce, cross_entropy, focal") as error:
        values(given, WEIGHTED)
    assert 'loss = "cross_entropy"' in error.value.action


@pytest.mark.parametrize(
    ("given", "action"),
    [
        ("dise", "Did you mean `dice`? Or take the name of one of Keras's losses."),
        ("bce + dise", "Did you mean `dice`?"),
        ("bce ** dice", "Correct the formula."),
    ],
)
def test_a_text_that_is_no_loss_is_refused_with_what_was_meant(given, action):
    with pytest.raises(UserError) as error:
        values(given)
    assert (error.value.received, error.value.action) == (f"{given!r} in my_task.py", action)


def of_outputs(y_pred, y_true):
    return keras.ops.mean(y_pred, axis=-1)


def test_a_function_that_takes_outputs_first_is_refused_by_its_names():
    """PyTorch's losses take this order; most would compute meaningless values."""
    model = keras.Sequential([keras.Input((3,))])
    assert resolved_loss(model, own, DATA, "my_task.py")(TRUE, OUTPUTS).shape == (3,)
    with pytest.raises(UserError) as refusal:
        resolved_loss(model, of_outputs, DATA, "my_task.py")
    assert refusal.value.received == "of_outputs(y_pred, y_true)"


def test_losses_of_outputs_are_summed_by_their_weights():
    losses = {"a": lambda t, o: t - o, "b": lambda t, o: t * o}
    of_samples = summed(losses, {"b": 0.5}, ["a", "b"])
    values = {"a": np.array([3.0, 4.0]), "b": np.array([2.0, 6.0])}
    ones = {"a": np.ones(2), "b": np.ones(2)}
    assert of_samples(values, [ones["a"], ones["b"]]).tolist() == [2 + 1, 3 + 3]
    assert of_samples(values, ones).tolist() == [2 + 1, 3 + 3]
