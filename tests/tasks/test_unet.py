import keras
import numpy as np
import pytest

from scalestudy.tasks.load import load_task
from scalestudy.tasks.task import DataInfo
from scalestudy.tasks.unet import unet

pytestmark = pytest.mark.engine


def filters(model: keras.Model, kind: type) -> list[int]:
    return [layer.filters for layer in model.layers if type(layer) is kind]


def test_the_layers_are_those_of_the_published_study():
    model = unet((64, 64, 1), 2)
    of_levels = [8, 16, 32, 64, 128, 64, 32, 16, 8]
    assert filters(model, keras.layers.Conv2D) == [*np.repeat(of_levels, 2), 1]
    assert filters(model, keras.layers.Conv2DTranspose) == [64, 32, 16, 8]
    assert (
        sum(
            isinstance(layer, keras.layers.BatchNormalization) for layer in model.layers
        )
        == 18
    )


@pytest.mark.parametrize(
    ("classes", "channels", "activation"), [(2, 1, "sigmoid"), (3, 3, "softmax")]
)
def test_one_class_ends_in_a_sigmoid_and_more_in_a_softmax(
    classes, channels, activation
):
    model = unet((32, 32, 1), classes)
    assert model.output_shape == (None, 32, 32, channels)
    assert model.layers[-1].activation.__name__ == activation


@pytest.mark.parametrize("size", [(33, 47), (16, 17), (100, 75)])
def test_sizes_that_do_not_halve_are_padded_and_cropped_back(size):
    model = unet((*size, 1), 2)
    assert model(np.zeros((1, *size, 1), "float32")).shape == (1, *size, 1)


def test_sizes_that_halve_are_not_padded():
    assert not [
        layer
        for layer in unet((48, 64, 1), 2).layers
        if "pad" in layer.name or "crop" in layer.name
    ]


def test_the_loss_of_a_sample_is_its_mean_over_valid_pixels():
    task = load_task("unet", DataInfo("masks", (16, 16, 1), 2, ignore=255))
    outputs = np.full((2, 16, 16, 1), 0.25, "float32")
    targets = np.zeros((2, 16, 16), "uint8")
    targets[1, :4] = 255
    targets[1, 4:8] = 1
    losses = np.asarray(task.loss(targets, keras.ops.convert_to_tensor(outputs)))
    assert losses == pytest.approx(
        [-np.log(0.75), -(np.log(0.25) + 2 * np.log(0.75)) / 3], rel=1e-5
    )


def test_the_loss_over_classes_is_sparse_cross_entropy():
    task = load_task("unet", DataInfo("masks", (16, 16, 1), 3))
    outputs = np.tile(np.array([0.5, 0.25, 0.25], "float32"), (1, 16, 16, 1))
    losses = np.asarray(
        task.loss(
            np.full((1, 16, 16), 1, "uint8"), keras.ops.convert_to_tensor(outputs)
        )
    )
    assert losses == pytest.approx([-np.log(0.25)], rel=1e-5)
