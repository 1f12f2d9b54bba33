"""Keras's optimizers by name, and updates with few kernels that equal theirs, up to rounding."""

from contextlib import nullcontext
from typing import get_args

import keras
import numpy as np
import pytest

from scalestudy.config.value_types import Optimizer
from scalestudy.engines.keras.private import take_summed
from scalestudy.engines.tensorflow.optimizers import (
    TableSchedule,
    fuse,
    make_keras_optimizer,
)

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("framework")]
"""The first variable of a process fixes TensorFlow's devices, so every test requests them first."""

CONSTANT = np.full(5, 0.01)


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [
        ("sgd", keras.optimizers.SGD, {"momentum": 0.0}),
        ("momentum", keras.optimizers.SGD, {"momentum": 0.9, "nesterov": False}),
        ("nesterov", keras.optimizers.SGD, {"momentum": 0.9, "nesterov": True}),
        ("adam", keras.optimizers.Adam, {}),
        ("adamw", keras.optimizers.AdamW, {}),
        ("lamb", keras.optimizers.Lamb, {}),
    ],
)
def test_a_name_makes_the_optimizer_of_that_name(name, kind, settings):
    made = make_keras_optimizer(name, CONSTANT)
    assert type(made) is kind
    assert {key: getattr(made, key) for key in settings} == settings


def test_a_schedule_gives_each_step_its_rate_and_keeps_the_last():
    schedule = TableSchedule([0.1, 0.2, 0.3])
    assert [float(schedule(step)) for step in (0, 1, 2, 3, 99)] == pytest.approx(
        [0.1, 0.2, 0.3, 0.3, 0.3]
    )


def test_a_constant_rate_stays_settable_for_callbacks():
    optimizer = make_keras_optimizer("adam", CONSTANT)
    optimizer.learning_rate = 0.5
    assert float(optimizer.learning_rate) == pytest.approx(0.5)


@pytest.mark.parametrize("kappa", [4, 14, 64])
def test_square_root_scaling_lets_the_averages_span_as_many_samples_and_leaves_momentum(
    kappa,
):
    adam = make_keras_optimizer("adam", CONSTANT, kappa=kappa, scaling="sqrt")
    found = adam.beta_1, adam.beta_2, adam.epsilon
    assert found == pytest.approx((0.9**kappa, 0.999**kappa, 1e-7 / kappa**0.5))
    assert (
        make_keras_optimizer("momentum", CONSTANT, kappa=kappa, scaling="sqrt").momentum
        == 0.9
    )


def test_gradients_are_scaled_down_to_the_global_norm_of_all_of_them():
    assert (
        make_keras_optimizer("adam", np.full(5, 1.0), clip_norm=2.0).global_clipnorm
        == 2
    )
    optimizer = make_keras_optimizer("sgd", np.full(5, 1.0), clip_norm=2.0)
    variables = [keras.Variable(np.zeros(1)), keras.Variable(np.zeros(1))]
    optimizer.build(variables)
    optimizer.apply([np.array([3.0], "float32"), np.array([4.0], "float32")], variables)
    np.testing.assert_allclose(
        [float(each.numpy()[0]) for each in variables], [-1.2, -1.6], rtol=1e-6
    )


SHAPES = ((3, 4), (4,), (2,))
FUSED = [name for name in get_args(Optimizer) if name != "lamb"]
"""Optimizers for which TensorFlow has a kernel."""
KERNELS = {"adamw": 3}
"""Kernels launched for the update of a variable, if not one."""
FREE = {"Const", "Identity", "NoOp", "Placeholder", "ReadVariableOp"}
ALIKE = {"rtol": 2e-5, "atol": 1e-5}
"""Adam's kernel computes 1 - 0.999 from float32's 0.999, which changes each update by a relative 6e-6."""


def updated(framework, name, table, *, fused, mirrored=False, repeats=1, **how):
    """Return variables of each device after each optimizer step, and the operations of a device's step."""
    tf = framework
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]) if mirrored else None
    draw = np.random.default_rng(0)
    starts = [draw.normal(size=shape).astype("float32") for shape in SHAPES * repeats]
    with strategy.scope() if strategy else nullcontext():
        variables = [keras.Variable(start) for start in starts]
        optimizer = make_keras_optimizer(name, np.asarray(table), **how)
        take_summed(optimizer)
        if fused:
            fuse(optimizer)
        optimizer.build(variables)

    def update(*gradients):
        optimizer.apply(list(gradients), variables)

    step = tf.function(
        lambda *given: strategy.run(update, given) if strategy else update(*given),
        autograph=False,
    )
    copies = (
        strategy.experimental_local_results if strategy else lambda variable: [variable]
    )
    values = []
    for _ in table:
        step(
            *(
                tf.constant(draw.normal(size=shape).astype("float32"))
                for shape in SHAPES * repeats
            )
        )
        devices = zip(*(copies(variable.value) for variable in variables), strict=True)
        values.append(
            [
                np.concatenate([copy.numpy().ravel() for copy in device])
                for device in devices
            ]
        )
    operations = step.get_concrete_function(*starts).graph.get_operations()
    return np.array(values), [
        operation for operation in operations if operation.type not in FREE
    ]


@pytest.mark.parametrize("name", FUSED)
def test_they_are_keras_own_step_by_step(framework, name):
    for table, how in (
        ([0.1] * 8, {}),
        (np.linspace(0.1, 0.01, 8), {"clip_norm": 0.5}),
    ):
        expected, many = updated(framework, name, table, fused=False, **how)
        fused, few = updated(framework, name, table, fused=True, **how)
        np.testing.assert_allclose(fused, expected, **ALIKE)
        assert len(few) < len(many)


def test_an_optimizer_without_a_kernel_stays_as_it_is(framework):
    plain, operations = updated(framework, "lamb", [0.1, 0.01], fused=False)
    same, alike = updated(framework, "lamb", [0.1, 0.01], fused=True)
    assert np.array_equal(plain, same)
    assert len(operations) == len(alike)


@pytest.mark.parametrize("name", FUSED)
def test_a_variable_takes_few_kernels(framework, name):
    one, two = (
        len(updated(framework, name, [0.1, 0.01], fused=True, repeats=repeats)[1])
        for repeats in (1, 2)
    )
    assert two - one == KERNELS.get(name, 1) * len(SHAPES)


@pytest.mark.parametrize("name", ["nesterov", "adamw"])
def test_mirrored_copies_are_updated_each_on_its_device(framework, name):
    table = np.linspace(0.1, 0.01, 4)
    expected, _ = updated(framework, name, table, fused=False, mirrored=True)
    fused, operations = updated(framework, name, table, fused=True, mirrored=True)
    assert np.array_equal(fused[:, 0], fused[:, 1])
    np.testing.assert_allclose(fused, expected, **ALIKE)
    devices = [
        operation.device
        for operation in operations
        if "ResourceApply" in operation.type
    ]
    assert {device[-5:] for device in devices} == {"CPU:0", "CPU:1"}
