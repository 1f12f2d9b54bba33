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
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
]

PROGRAM = """
import json, sys
import keras, numpy as np, torch
from scalestudy.engines.keras.arithmetic import begin
from scalestudy.engines.torch.torch_engine import as_on_tensorflow
as_on_tensorflow()
begin(3, "float64")
kinds = keras.initializers.GlorotUniform, keras.initializers.HeNormal, keras.initializers.RandomNormal
drawn = [keras.ops.convert_to_numpy(kind()((3, 3, 5, 7))) for kind in kinds]
outputs = keras.layers.Activation("softmax")(torch.tensor([[0.0, 60.0]], requires_grad=True))
loss = keras.losses.sparse_categorical_crossentropy(torch.tensor([0]), outputs)
third, one = torch.full((1, 1), 1 / 3, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
product = keras.ops.matmul(third, one)
images, kernel = torch.rand(2, 6, 6, 3), torch.rand(3, 3, 3, 4)
layer = keras.layers.Conv2D(4, 3, 2, "same", bias_initializer="random_normal", dtype="float32")
layer(images)
without = keras.ops.conv(images, layer.kernel, 2, "same", "channels_last") + layer.bias.value
up = keras.layers.Conv2DTranspose(4, 2, 2, "same", bias_initializer="random_normal", dtype="float32")
up(images)
larger = keras.ops.conv_transpose(images, up.kernel, 2, "same", data_format="channels_last") + up.bias.value
both = [(layer(images) - without), (up(images) - larger)]
bias = max(float(difference.detach().abs().max()) for difference in both)
plain = torch.nn.functional.conv2d(images.permute(0, 3, 1, 2).contiguous(), kernel.permute(3, 2, 0, 1))
ours = keras.ops.conv(images, kernel, data_format="channels_last")
answers = {
    "loss": float(loss.detach()),
    "product": float(product),
    "convolved": float((ours - plain.permute(0, 2, 3, 1)).abs().max()),
    "with bias": bias,
    "tensorflow": "tensorflow" in sys.modules,
}
print(json.dumps(answers))
np.savez(sys.argv[1], *drawn)
begin(3, "float32")
net = keras.saving.load_model(sys.argv[2])
net.load_weights(sys.argv[2])
net.set_weights([weight + 1 for weight in net.get_weights()])
net.save(sys.argv[2])
"""


@pytest.fixture(scope="module")
def exchanged(framework, tmp_path_factory):
    """A TensorFlow model, its file, whose weights PyTorch increases by 1, and the weights before."""
    import keras

    layers = keras.layers.Conv2D(2, 3), keras.layers.BatchNormalization(), keras.layers.Dense(3)
    net = keras.Sequential([keras.Input((8, 8, 1)), *layers])
    file = tmp_path_factory.mktemp("exchanged") / "model.keras"
    net.save(file)
    return net, file, net.get_weights()


@pytest.fixture(scope="module")
def computed(exchanged, tmp_path_factory):
    """Run the program; return the numbers that it prints and the initial values that it draws."""
    file = tmp_path_factory.mktemp("drawn") / "drawn.npz"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file), str(exchanged[1])],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"KERAS_BACKEND": "torch", "KERAS_TORCH_DEVICE": "cpu", "PYTHONPATH": str(SOURCE)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(file) as arrays:
        return json.loads(done.stdout.splitlines()[-1]), list(arrays.values())


def test_keras_computes_by_logits_in_all_bits_and_in_the_layout_of_its_inputs(computed):
    found, _ = computed
    assert found["loss"] == pytest.approx(60)  # 16.1 from probabilities, which Keras clips
    assert found["product"] == 1 / 3
    assert found["convolved"] < 1e-5 and found["with bias"] < 1e-5
    assert not found["tensorflow"]


def test_a_model_of_either_engine_begins_with_the_weights_that_the_other_has_saved(computed, exchanged):
    net, file, before = exchanged
    net.load_weights(file)
    for weight, old in zip(net.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, old + 1)


def test_weights_begin_as_on_tensorflow(computed, framework):
    import keras

    from scalestudy.engines.keras.arithmetic import begin

    begin(3, "float64")
    try:
        kinds = keras.initializers.GlorotUniform, keras.initializers.HeNormal, keras.initializers.RandomNormal
        for kind, drawn in zip(kinds, computed[1], strict=True):
            expected = np.asarray(kind()((3, 3, 5, 7)))
            assert drawn.dtype == expected.dtype == np.float64
            np.testing.assert_allclose(drawn, expected, rtol=1e-14)
            assert drawn.std() > 0
    finally:
        begin(0, "float32")
