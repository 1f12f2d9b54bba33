"""Keras on PyTorch computes as on TensorFlow; each check runs in its own process."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from paths import SOURCE

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
    ),
]

PROGRAM = """
import json, sys
import keras, numpy as np, torch
from scalestudy.engines.keras.arithmetic import set_seed_and_precision
from scalestudy.engines.keras.private import keep_wide_types
from scalestudy.engines.torch.convolutions import keep_layout
from scalestudy.engines.torch.engine import without_tensorflow
from scalestudy.tasks.task import DataInfo
from scalestudy.tasks.loss import loss_of
without_tensorflow()
keep_wide_types()
set_seed_and_precision(3, "float64")
data = DataInfo("classes", (4, 4, 1), 2)
given = torch.tensor([[0.0, 60.0]], requires_grad=True)
outputs = keras.layers.Activation("softmax")(given), keras.layers.Activation("sigmoid")(-given[:, 1:])
kinds = [
    ("cross_entropy", 0, 0),
    ("sparse_categorical_crossentropy", 0, 0),
    (keras.losses.SparseCategoricalCrossentropy(), 0, 0),
    (keras.losses.CategoricalCrossentropy, [1.0, 0.0], 0),
    ("binary_crossentropy", 1.0, 1),
    (keras.losses.BinaryCrossentropy(), 1.0, 1),
]
losses = [
    float(loss_of(loss, data, "")(torch.tensor([target]), outputs[which]).detach().ravel()[0])
    for loss, target, which in kinds
]
third, one = torch.full((1, 1), 1 / 3, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
product = keras.ops.matmul(third, one)

def in_layout(layer, *shape):
    # The kind of the adapted layer, whether its outputs have channels last, by how much results differ.
    images, found = torch.rand(2, *shape, 4, requires_grad=True), []
    layer(images)
    for adapted in (False, True):
        if adapted:
            keep_layout(layer)
        images.grad = None
        for weight in layer.weights:
            weight.value.grad = None
        outputs = layer(images)
        outputs.square().sum().backward()
        grads = [weight.value.grad for weight in layer.weights]
        found.append([outputs, images.grad, *grads])
    difference = max(float((one - other).abs().max().detach()) for one, other in zip(*found))
    return [type(layer).__mro__[1].__name__, outputs.is_contiguous(), difference]

L, words = keras.layers, {"bias_initializer": "random_normal", "dtype": "float32"}
layers = [
    in_layout(L.Conv1D(6, 3, padding="same", **words), 9),
    in_layout(L.Conv2D(6, 3, 2, "same", activation="softmax", **words), 6, 7),
    in_layout(L.Conv2D(6, (3, 2), dilation_rate=2, use_bias=False, dtype="float32"), 9, 9),
    in_layout(L.Conv2D(6, 3, groups=2, activation="relu", **words), 6, 7),
    in_layout(L.Conv3D(6, 2, padding="same", **words), 4, 5, 6),
    in_layout(L.Conv2DTranspose(6, 2, 2, "same", **words), 4, 5),
    in_layout(L.Conv2DTranspose(6, 3, 2, "same", **words), 4, 5),
    in_layout(L.Conv1D(6, 3, padding="causal", **words), 9),
    in_layout(L.DepthwiseConv2D(3, 2, "same", activation="relu", **words), 6, 7),
    in_layout(L.SeparableConv2D(6, 3, padding="same", activation="softmax", **words), 6, 7),
    in_layout(L.MaxPooling2D(2, padding="same", dtype="float32"), 5, 6),
    in_layout(L.AveragePooling2D(3, 2, "same", dtype="float32"), 5, 6),
]
answers = {
    "losses": losses,
    "product": float(product),
    "layers": layers,
    "tensorflow": "tensorflow" in sys.modules,
}
print(json.dumps(answers))
set_seed_and_precision(3, "float32")
net = keras.saving.load_model(sys.argv[1])
net.load_weights(sys.argv[1])
net.set_weights([weight + 1 for weight in net.get_weights()])
net.save(sys.argv[1])
"""


@pytest.fixture(scope="module")
def exchanged(framework, tmp_path_factory):
    """A TensorFlow model, its file, whose weights PyTorch increases by 1, and the weights before."""
    import keras

    layers = (
        keras.layers.Conv2D(2, 3),
        keras.layers.BatchNormalization(),
        keras.layers.Dense(3),
    )
    net = keras.Sequential([keras.Input((8, 8, 1)), *layers])
    file = tmp_path_factory.mktemp("exchanged") / "model.keras"
    net.save(file)
    return net, file, net.get_weights()


@pytest.fixture(scope="module")
def computed(exchanged):
    """Run the program; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(exchanged[1])],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {
            "KERAS_BACKEND": "torch",
            "KERAS_TORCH_DEVICE": "cpu",
            "PYTHONPATH": str(SOURCE),
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_cross_entropies_are_computed_from_logits(computed):
    assert computed["losses"] == pytest.approx(
        [60] * 6
    )  # 16.1 from probabilities, which Keras clips


def test_keras_computes_in_all_bits_and_without_tensorflow(computed):
    assert computed["product"] == 1 / 3
    assert not computed["tensorflow"]


KINDS = "_Depthwise", "_Separable", "_MaxPooled", "_MeanPooled"
"""Of layers whose bias is no part of the kernel."""


def test_convolutions_and_pooling_keep_the_layout_of_their_inputs(computed):
    found = computed["layers"]
    kinds = [kind for kind, _, _ in found]
    assert kinds == [
        *["_Convolved"] * 5,
        "_SideBySide",
        "_Transposed",
        "BaseConv",
        *KINDS,
    ]
    planes = [found[index] for index in (1, 2, 3, 5, 6, 8, 9, 10, 11)]
    assert all(channels_last for _, channels_last, _ in planes), planes
    assert max(difference for _, _, difference in found) < 1e-4


def test_a_model_of_either_engine_begins_with_the_weights_that_the_other_has_saved(
    computed, exchanged
):
    net, file, before = exchanged
    net.load_weights(file)
    for weight, old in zip(net.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, old + 1)
