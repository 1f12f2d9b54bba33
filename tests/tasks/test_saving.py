"""A model that cannot be saved or loaded is refused before training."""

import keras
import numpy as np
import pytest
from keras import layers

from scalestudy.tasks.load import load_task
from scalestudy.tasks.task import DataInfo
from scalestudy.tasks.trial import prove_savable
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine


class Silent(keras.Model):
    """Does not describe its arguments."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, inputs):
        return self.inner(inputs)


class Refusing(layers.Layer):
    """Has a configuration that cannot rebuild it."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def call(self, inputs):
        return self.factor * inputs

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


class Scaled(layers.Layer):
    """Follows Keras's rules."""

    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def build(self, input_shape):
        self.own = self.add_weight(shape=(1,), name="own")

    def call(self, inputs):
        return self.own * self.factor * inputs

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


class Forgetful(Scaled):
    """Does not save its weight."""

    def save_own_variables(self, store):
        pass

    def load_own_variables(self, store):
        pass


def squared(x):
    return x * x


def functional(*inner):
    inputs = outputs = keras.Input((4,))
    for layer in inner:
        outputs = layer(outputs)
    return keras.Model(inputs, layers.Dense(2, name="last")(outputs))


def subclassed():
    model = Silent(layers.Dense(3))
    model(np.zeros((1, 4), "float32"))
    return model


def prove(model, folder, definitions):
    prove_savable(model, str(folder / "model.keras"), definitions)


@pytest.mark.parametrize(
    ("made", "name", "remedy"),
    [
        (subclassed, "Silent", "a get_config()"),
        (
            lambda: functional(layers.Dense(3), Refusing(2)),
            "Refusing",
            "a get_config()",
        ),
        (
            lambda: functional(keras.Sequential([keras.Input((4,)), Refusing(2)])),
            "Refusing",
            "a get_config()",
        ),
        (lambda: functional(Forgetful(2)), "Forgetful", "self.add_weight()"),
    ],
)
def test_classes_of_ones_own_that_cannot_be_kept_are_named(
    framework, tmp_path, made, name, remedy
):
    with pytest.raises(UserError) as caught:
        prove(
            made(),
            tmp_path,
            {kind.__name__: kind for kind in (Silent, Refusing, Forgetful)},
        )
    assert caught.value.received.startswith(f"{name}: ")
    assert remedy in caught.value.action
    assert len(str(caught.value)) < 700


def test_layers_and_functions_of_the_tasks_file_are_loaded_with_it(framework, tmp_path):
    model = functional(
        Scaled(3), layers.Dense(3, activation=squared), layers.Lambda(lambda x: x + 1)
    )
    prove(model, tmp_path, {"Scaled": Scaled, "squared": squared})
    again = keras.saving.load_model(
        tmp_path / "model.keras",
        custom_objects={"Scaled": Scaled, "squared": squared},
        safe_mode=False,
    )
    x = np.random.default_rng(0).random((5, 4)).astype("float32")
    assert np.array_equal(model(x), again(x))


def test_a_class_that_the_tasks_file_does_not_name_is_refused(framework, tmp_path):
    with pytest.raises(UserError, match="Scaled"):
        prove(functional(Scaled(3)), tmp_path, {})


def test_a_folder_that_cannot_be_written_is_no_fault_of_the_model(framework, tmp_path):
    with pytest.raises(OSError, match="absent"):
        prove(functional(), tmp_path / "absent", {})


def test_both_built_in_tasks_can_be_kept(framework, tmp_path):
    for name, kind in (("cnn", "classes"), ("unet", "masks")):
        task = load_task(name, DataInfo(kind, (20, 20, 1), 2))
        prove(task.model, tmp_path, task.definitions)
