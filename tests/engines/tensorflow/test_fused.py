"""Updates with few kernels per variable equal those of Keras's optimizers, up to rounding."""

from contextlib import nullcontext
from typing import get_args

import numpy as np
import pytest

from scalestudy.config.settings import Optimizer

pytestmark = pytest.mark.engine
SHAPES = ((3, 4), (4,), (2,))
KERNELS = {"adamw": 3, "lamb": 7}
"""Kernels launched for the update of a variable, if not one."""
FREE = {"Const", "Identity", "NoOp", "Placeholder", "ReadVariableOp"}
ALIKE = {"rtol": 2e-5, "atol": 1e-5}
"""Adam's kernel computes 1 - 0.999 from float32's 0.999, which changes each update by a relative 6e-6."""


def updated(framework, name, table, *, fused, mirrored=False, repeats=1, **how):
    """Return variables of each device after each optimizer step, and the operations of a device's step."""
    import keras

    from scalestudy.engines.keras.private import take_summed
    from scalestudy.engines.tensorflow.keras_optimizers import fuse, make_optimizer

    tf = framework
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]) if mirrored else None
    draw = np.random.default_rng(0)
    starts = [draw.normal(size=shape).astype("float32") for shape in SHAPES * repeats]
    starts[2][:] = 0  # LAMB takes the plain rate for all-zero weights
    with strategy.scope() if strategy else nullcontext():
        variables = [keras.Variable(start) for start in starts]
        optimizer = make_optimizer(name, np.asarray(table), **how)
        take_summed(optimizer)
        if fused:
            fuse(optimizer)
        optimizer.build(variables)

    def update(*gradients):
        optimizer.apply(list(gradients), variables)

    step = tf.function(
        lambda *given: strategy.run(update, given) if strategy else update(*given), autograph=False
    )
    copies = strategy.experimental_local_results if strategy else lambda variable: [variable]
    values = []
    for _ in table:
        step(*(tf.constant(draw.normal(size=shape).astype("float32")) for shape in SHAPES * repeats))
        devices = zip(*(copies(variable.value) for variable in variables), strict=True)
        values.append([np.concatenate([copy.numpy().ravel() for copy in device]) for device in devices])
    operations = step.get_concrete_function(*starts).graph.get_operations()
    return np.array(values), [operation for operation in operations if operation.type not in FREE]


@pytest.mark.parametrize("name", get_args(Optimizer))
def test_they_are_keras_own_step_by_step(framework, name):
    for table, how in (([0.1] * 8, {}), (np.linspace(0.1, 0.01, 8), {"clip_norm": 0.5})):
        expected, many = updated(framework, name, table, fused=False, **how)
        fused, few = updated(framework, name, table, fused=True, **how)
        np.testing.assert_allclose(fused, expected, **ALIKE)
        assert len(few) < len(many)


@pytest.mark.parametrize("name", get_args(Optimizer))
def test_a_variable_takes_few_kernels(framework, name):
    one, two = (
        len(updated(framework, name, [0.1, 0.01], fused=True, repeats=repeats)[1]) for repeats in (1, 2)
    )
    assert two - one == KERNELS.get(name, 1) * len(SHAPES)


@pytest.mark.parametrize("name", ["nesterov", "adamw", "lamb"])
def test_mirrored_copies_are_updated_each_on_its_device(framework, name):
    table = np.linspace(0.1, 0.01, 4)
    expected, _ = updated(framework, name, table, fused=False, mirrored=True)
    fused, operations = updated(framework, name, table, fused=True, mirrored=True)
    assert np.array_equal(fused[:, 0], fused[:, 1])
    np.testing.assert_allclose(fused, expected, **ALIKE)
    devices = [operation.device for operation in operations if "ResourceApply" in operation.type]
    assert {device[-5:] for device in devices} == {"CPU:0", "CPU:1"}
