"""Losses by name, by formula, of Keras and of task files: one value per sample."""

import inspect
from dataclasses import replace

import keras
import numpy as np
import pytest

from distributed_evaluation import evaluated_set
from scalestudy.config.objectives import LOSSES, WEIGHTED, loss_terms
from scalestudy.losses import bce, dice, focal
from scalestudy.tasks.label_losses import NAMED, sum_of
from scalestudy.tasks.loss import loss_of, resolve_loss
from scalestudy.tasks.task import DataInfo
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine

SETS = {
    "masks of 2": evaluated_set("masks", 2),
    "masks of 4": evaluated_set("masks", 4),
    "classes of 2": evaluated_set("classes", 2),
    "classes of 6": evaluated_set("classes", 6),
}


def losses(text, given, data=None):
    """Return the loss of each sample."""
    of_samples = sum_of(loss_terms(text), data or given.data)
    return np.asarray(of_samples(given.targets, given.outputs), np.float64)


def samples(given):
    """Yield labels [P] and probabilities [P, classes] of each sample, without ignored pixels."""
    for row in range(len(given.targets)):
        yield given._replace(
            targets=given.targets[row : row + 1], outputs=given.outputs[row : row + 1]
        ).flat


def entropies(true, p, weights):
    return -weights[true] * np.log(p[np.arange(len(true)), true])


def coefficients(true, p, single):
    """Return the Dice coefficient of each class, with the smoothing 1."""
    y = np.eye(p.shape[1])[true]
    y, p = (y[:, 1:], p[:, 1:]) if single else (y, p)
    return (2 * (y * p).sum(0) + 1) / (p.sum(0) + y.sum(0) + 1)


def expected(text, given, weights=None):
    """Compute losses by their formulas, in float64, sample by sample."""
    single, count = given.outputs.shape[-1] == 1, given.data.classes
    weights = np.ones(count) if weights is None else np.asarray(weights)

    def focal(true, p):
        return (1 - p[np.arange(len(true)), true]) ** 2 * entropies(true, p, weights)

    of_sample = {
        "bce": lambda true, p: entropies(true, p, weights).mean(),
        "cross_entropy": lambda true, p: entropies(true, p, weights).mean(),
        "focal": lambda true, p: focal(true, p).mean(),
        "dice": lambda true, p: 1 - coefficients(true, p, single).mean(),
    }[text]
    return [of_sample(true, p) for true, p in samples(given)]


def test_every_loss_that_a_study_may_name_is_there_with_the_same_parameters():
    assert NAMED.names() == list(LOSSES)
    for name, ranges in LOSSES.items():
        own = {
            key: each.default
            for key, each in inspect.signature(NAMED.get(name)).parameters.items()
        }
        assert own.pop("data") is inspect.Parameter.empty
        assert own == {key: each.default for key, each in ranges.items()}


@pytest.mark.parametrize("given", SETS.values(), ids=SETS)
@pytest.mark.parametrize("text", LOSSES)
def test_each_is_its_formula_of_every_sample_alone_and_ignores_what_does_not_count(
    text, given
):
    assert losses(text, given) == pytest.approx(
        expected(text, given), rel=2e-5, abs=1e-6
    )


@pytest.mark.parametrize("text", WEIGHTED)
@pytest.mark.parametrize("name", ["masks of 2", "masks of 4", "classes of 6"])
def test_class_weights_multiply_the_losses_of_a_classs_labels(text, name):
    given = SETS[name]
    weights = tuple(np.linspace(0.5, 3, given.data.classes).tolist())
    data = replace(given.data, class_weights=weights)
    assert losses(text, given, data) == pytest.approx(
        expected(text, given, weights), rel=2e-5
    )


def test_a_sample_of_which_nothing_counts_loses_nothing():
    given = SETS["masks of 4"]
    given = given._replace(targets=np.full_like(given.targets, 255))
    for text in LOSSES:
        assert losses(text, given) == pytest.approx(
            0, abs=1e-4
        )  # the root of a tiny number


@pytest.mark.parametrize("text", LOSSES)
@pytest.mark.parametrize(("classes", "activation"), [(2, "sigmoid"), (3, "softmax")])
def test_losses_and_slopes_stay_finite_for_certain_and_wrong_outputs(
    framework, text, classes, activation
):
    for dtype in ("float32", "float16"):
        _losses_and_slopes_are_finite(framework, text, classes, activation, dtype)


def _losses_and_slopes_are_finite(framework, text, classes, activation, dtype):
    tf = framework
    data = DataInfo("masks", (64, 64, 1), classes, 255)
    targets = np.zeros((2, 64, 64), "uint8")
    targets[:, :32] = 1
    targets[:, 0] = 255
    logits = np.full((2, 64, 64, 1 if classes == 2 else classes), -40.0, "float16")
    logits[..., -1] = 40  # right for no pixel, or for half
    variable = tf.Variable(tf.cast(logits, dtype))
    with tf.GradientTape() as tape:
        outputs = keras.layers.Activation(activation, dtype=dtype)(variable)
        found = sum_of(loss_terms(text), data)(targets, outputs)
    slope = tape.gradient(found, variable)
    assert found.dtype == tf.float32 and np.isfinite(found).all()
    assert np.isfinite(tf.cast(slope, tf.float32)).all()
    if text in WEIGHTED:  # from logits: 40 or 80 per wrong pixel; p has underflowed
        wrong = 40 * 32 / 63 if classes == 2 else 80
        assert np.asarray(found) == pytest.approx(wrong, rel=1e-2)
        assert np.abs(tf.cast(slope, tf.float32)).max() > 0


def test_a_16_bit_output_without_logits_is_widened_before_its_logarithm(framework):
    outputs = framework.constant(np.array([[0.0], [1.0]], "float16"))
    found = bce(DataInfo("classes", (1, 1, 1), 2))(np.array([1, 0]), outputs)
    assert np.isfinite(found).all() and np.asarray(found).min() > 10


DATA = DataInfo("classes", (8, 8, 1), 3)
WEIGHTED_DATA = DataInfo("classes", (8, 8, 1), 3, class_weights=(1.0, 2.0, 4.0))
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
        lambda data: focal(data, gamma=0.0),
        lambda data: "cross_entropy",
        lambda data: keras.losses.SparseCategoricalCrossentropy(),
    ],
)
def test_a_formula_a_name_of_keras_a_loss_of_keras_and_a_function_of_the_data_give_losses_of_samples(
    given,
):
    assert values(given) == pytest.approx(PLAIN, rel=1e-5)


def test_a_formula_is_ours_also_where_keras_has_a_loss_of_that_name():
    assert values("dice").shape == (3,)  # Keras's is one value for the batch
    assert values("dice") == pytest.approx(values(dice))
    assert values("bce + 2*dice") == pytest.approx(PLAIN + 2 * values(dice), rel=1e-5)


def test_class_weights_reach_formulas_and_functions_of_the_data():
    for given in (
        "cross_entropy",
        bce,
        lambda data: focal(data, gamma=0.0),
        lambda data: "bce",
    ):
        assert values(given, WEIGHTED_DATA) == pytest.approx(
            PLAIN * [1, 2, 4], rel=1e-5
        )
    assert values("bce + dice", WEIGHTED_DATA) == pytest.approx(
        PLAIN * [1, 2, 4] + values("dice"), rel=1e-5
    )


@pytest.mark.parametrize(
    "given", ["2*dice", "mse", keras.losses.MeanSquaredError(), own]
)
def test_class_weights_are_refused_by_a_loss_that_takes_none(given):
    with pytest.raises(
        UserError, match=r"takes class weights \(bce, cross_entropy, focal"
    ) as error:
        values(given, WEIGHTED_DATA)
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
    assert (error.value.received, error.value.action) == (
        f"{given!r} in my_task.py",
        action,
    )


def of_outputs(y_pred, y_true):
    return keras.ops.mean(y_pred, axis=-1)


def test_a_function_that_takes_outputs_first_is_refused_by_its_names():
    """PyTorch's losses take this order; most would compute meaningless values."""
    model = keras.Sequential([keras.Input((3,))])
    assert resolve_loss(model, own, DATA, "my_task.py")(TRUE, OUTPUTS).shape == (3,)
    with pytest.raises(UserError) as refusal:
        resolve_loss(model, of_outputs, DATA, "my_task.py")
    assert refusal.value.received == "of_outputs(y_pred, y_true)"
