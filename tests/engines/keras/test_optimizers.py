import keras
import numpy as np
import pytest

from scalestudy.engines.tensorflow.keras_optimizers import TableSchedule, make_optimizer

pytestmark = pytest.mark.engine
CONSTANT = np.full(5, 0.01)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sgd", keras.optimizers.SGD),
        ("momentum", keras.optimizers.SGD),
        ("nesterov", keras.optimizers.SGD),
        ("adam", keras.optimizers.Adam),
        ("adamw", keras.optimizers.AdamW),
        ("lamb", keras.optimizers.Lamb),
    ],
)
def test_a_name_makes_the_optimizer_of_that_name(name, kind):
    assert type(make_optimizer(name, CONSTANT)) is kind


def test_momentum_and_nesterov_differ_from_plain_sgd():
    plain, momentum, nesterov = (make_optimizer(name, CONSTANT) for name in ("sgd", "momentum", "nesterov"))
    assert (plain.momentum, momentum.momentum, nesterov.momentum) == (0.0, 0.9, 0.9)
    assert (momentum.nesterov, nesterov.nesterov) == (False, True)


def test_a_schedule_gives_each_step_its_rate_and_keeps_the_last():
    schedule = TableSchedule([0.1, 0.2, 0.3])
    assert [float(schedule(step)) for step in (0, 1, 2, 3, 99)] == pytest.approx([0.1, 0.2, 0.3, 0.3, 0.3])


def test_a_constant_rate_stays_settable_for_callbacks():
    optimizer = make_optimizer("adam", CONSTANT)
    optimizer.learning_rate = 0.5
    assert float(optimizer.learning_rate) == pytest.approx(0.5)


@pytest.mark.parametrize("kappa", [4, 14, 64])
def test_square_root_scaling_lets_the_averages_of_adam_span_as_many_samples(kappa):
    adam = make_optimizer("adam", CONSTANT, kappa=kappa, scaling="sqrt")
    assert adam.beta_1 == pytest.approx(0.9**kappa)
    assert adam.beta_2 == pytest.approx(0.999**kappa)
    assert adam.epsilon == pytest.approx(1e-7 / kappa**0.5)


def test_square_root_scaling_of_sgd_moves_the_rate_alone():
    assert make_optimizer("momentum", CONSTANT, kappa=16, scaling="sqrt").momentum == 0.9


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_gradients_are_scaled_down_to_the_global_norm_of_all_of_them(name):
    optimizer = make_optimizer(name, np.full(5, 1.0), clip_norm=2.0)
    assert optimizer.global_clipnorm == 2
    if name == "sgd":
        variables = [keras.Variable(np.zeros(1)), keras.Variable(np.zeros(1))]
        optimizer.build(variables)
        optimizer.apply([np.array([3.0], "float32"), np.array([4.0], "float32")], variables)
        np.testing.assert_allclose([float(each.numpy()[0]) for each in variables], [-1.2, -1.6], rtol=1e-6)
