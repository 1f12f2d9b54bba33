"""Updates by one kernel a variable are those of Keras's optimizers, to rounding."""

import numpy as np
import pytest

pytestmark = pytest.mark.engine
SHAPES = ((3, 4), (4,))


def updated(framework, name, table, *, fused, **how):
    """Variables after each step of an optimizer, and the operations of a step's graph."""
    import keras

    from scalestudy.engines.keras.optimizers import make_optimizer
    from scalestudy.engines.tensorflow.step import fuse

    draw = np.random.default_rng(0)
    variables = [keras.Variable(draw.normal(size=shape).astype("float32")) for shape in SHAPES]
    optimizer = make_optimizer(name, np.asarray(table), **how)
    optimizer.build(variables)
    if fused:
        fuse(optimizer)
    step = framework.function(lambda *gradients: optimizer.apply(list(gradients), variables), autograph=False)
    values = []
    for _ in table:
        step(*(framework.constant(draw.normal(size=shape).astype("float32")) for shape in SHAPES))
        values.append(np.concatenate([variable.numpy().ravel() for variable in variables]))
    return np.array(values), step.get_concrete_function(*variables).graph.get_operations()


@pytest.mark.parametrize("name", ["sgd", "momentum", "nesterov", "adam", "adamw"])
def test_they_are_keras_own_step_by_step(framework, name):
    for table, how in (([0.1] * 8, {}), (np.linspace(0.1, 0.01, 8), {"clip_norm": 0.5})):
        expected, many = updated(framework, name, table, fused=False, **how)
        found, few = updated(framework, name, table, fused=True, **how)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
        assert sum("ResourceApply" in operation.type for operation in few) == len(SHAPES)
        assert len(few) < len(many)


def test_one_without_such_a_kernel_stays_as_it_is(framework):
    (expected, _), (found, _) = (updated(framework, "lamb", [0.1] * 3, fused=fused) for fused in (0, 1))
    assert np.array_equal(expected, found)
