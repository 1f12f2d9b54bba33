"""The way of a batch to its step: read once, staged on the device that computes it, waited for."""

import functools
import time

import numpy as np
import pytest

pytestmark = pytest.mark.engine

TASK = """
import keras

def model(data):
    inputs = keras.Input(data.input_shape)
    return keras.Sequential([inputs, keras.layers.Flatten(), keras.layers.Dense(data.classes, "softmax")])

loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


@pytest.fixture
def regression(session, tmp_path):
    """Make a session of a softmax regression on 120 digits for one epoch."""
    (tmp_path / "regression.py").write_text(TASK)
    return functools.partial(session, str(tmp_path / "regression.py"), epochs=1)


def trained(made) -> bytes:
    """Return the weights after an epoch."""
    made.compile()
    next(made.epoch_records())
    return b"".join(value.tobytes() for value in made.trainer.state.values().common)


@pytest.mark.parametrize(
    ("implementation", "workers"), [("single", 1), ("mirrored", 2)]
)
def test_between_the_data_set_and_the_model_a_batch_is_copied_once(
    regression, monkeypatch, implementation, workers
):
    """The loader has read into every address from which a step computes."""
    import tensorflow as tf

    from scalestudy.data import loader
    from scalestudy.data.loader import Slice
    from scalestudy.engines.tensorflow import trainer as steps

    read, computed = set(), set()
    scaled = steps.scale_inputs

    def look(inputs):
        computed.add(inputs.ctypes.data)
        return np.float32(1)

    def looked_at(inputs, scale):
        seen = tf.numpy_function(look, [inputs], tf.float32)
        return scaled(inputs, scale) * tf.ensure_shape(seen, [])

    monkeypatch.setattr(steps, "scale_inputs", looked_at)

    def noted(inputs, *rest):
        read.update(step.ctypes.data for step in inputs)
        return Slice(inputs, *rest)

    monkeypatch.setattr(loader, "Slice", noted)
    made = regression(implementation, workers, steps_per_call=2)
    trained(made)
    assert computed and computed <= read


def test_devices_that_are_given_their_slices_compute_the_same_bit_for_bit(
    regression, monkeypatch
):
    from scalestudy.engines.tensorflow import staging, trainer

    before = trained(regression("mirrored", 2))
    for module in (staging, trainer):
        monkeypatch.setattr(module, "gpu", functools.partial("CPU:{}".format))
    made = regression("mirrored", 2)
    assert trained(made) == before
    (call,) = list(made._loader.epoch(made.split.train[:25]))
    assert [part.inputs.device[-5:] for part in call] == ["CPU:0", "CPU:1"]


def test_waiting_for_input_is_told_from_computing(regression, monkeypatch):
    """While the first call is staged, the clock advances by 100 s, which counts as input, not as a step."""
    made = regression()
    made.compile()
    stage, late, now = made._loader._stage, [], time.perf_counter

    def slow(part, device):
        if not late:
            late.append(True)
            monkeypatch.setattr(time, "perf_counter", lambda: now() + 100)
        return stage(part, device)

    made._loader._stage = slow
    record = next(made.epoch_records())
    assert record.input_seconds >= 100
    assert record.train_seconds - record.input_seconds < 100
