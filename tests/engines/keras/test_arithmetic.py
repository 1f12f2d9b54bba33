"""Seeds, precision and determinism, and messages for what TensorFlow refuses."""

from contextlib import nullcontext

import keras
import pytest
import tensorflow as tf

from scalestudy.engines.keras.arithmetic import (
    explain_refusals,
    refuse_other_arithmetic,
)
from scalestudy.engines.tensorflow.engine import op_determinism, set_arithmetic
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.tracebacks import error_text

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("framework")]


def test_an_error_in_a_compiled_function_is_told_by_what_it_says(framework):
    @framework.function(input_signature=[framework.TensorSpec([None])])
    def last(values):
        return framework.gather(values, 7)

    with pytest.raises(
        framework.errors.InvalidArgumentError, match="Detected at node"
    ) as caught:
        last(framework.ones([5]))
    said = error_text(caught.value)
    assert said.startswith(
        "InvalidArgumentError: Graph execution error: indices = 7 is not in [0, 5)"
    )


REFUSALS = {
    "A deterministic GPU implementation of fused batch-norm backprop, when training is disabled, is not "
    "currently available.": "fused batch-norm backprop",
    "{{function_node f}} Deterministic GPU implementation of SoftmaxCrossEntropyWithLogits not available. "
    "[Op:SoftmaxCrossEntropyWithLogits]": "SoftmaxCrossEntropyWithLogits",
    "Determinism is not yet supported in GPU implementation of Bincount.": "Bincount",
    "Determinism is not yet supported for SVD of matrices with 1 column.": "SVD",
    "Graph execution error:\n\nDetected at node MaxPoolGrad\nGPU MaxPool gradient ops do not yet have a "
    "deterministic XLA implementation.\n\t [[{{node MaxPoolGrad}}]]": "MaxPool",
    "HLO instruction select-and-scatter does not have a deterministic implementation, but run-to-run "
    "determinism is required.": "select-and-scatter",
    "Random ops require a seed to be set when determinism is enabled. Please set a seed.": "Random ops",
}
"""Messages in the sources of TensorFlow and XLA, with words that our message must keep."""


@pytest.mark.parametrize(("message", "word"), REFUSALS.items())
def test_each_wording_becomes_a_message_with_the_key_to_change(message, word):
    with pytest.raises(RunError, match=word) as caught, explain_refusals():
        raise tf.errors.UnimplementedError(None, None, message)
    assert "deterministic = false" in caught.value.action
    assert ("xla = false" in caught.value.action) == ("XLA" in message)


@pytest.mark.parametrize(
    "message",
    [
        "OOM when allocating tensor with shape[64,1024]",
        'File "task.py", line 3, in deterministic_model\n  not found: weights.h5',
        "Incompatible shapes: [2] vs. [3]. Run with determinism to repeat it.",
    ],
)
def test_another_error_stays_as_it_is(message):
    with pytest.raises(tf.errors.InvalidArgumentError), explain_refusals():
        raise tf.errors.InvalidArgumentError(None, None, message)


def test_what_tensorflow_really_refuses_is_caught(framework):
    with (
        pytest.raises(
            RunError, match="Timestamp cannot be called when determinism is enabled"
        ),
        explain_refusals(),
    ):
        framework.function(framework.timestamp)()


def test_xla_really_refuses_max_pooling(framework):
    tf = framework

    @tf.function(jit_compile=True)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.nn.max_pool2d(x, 2, 2, "VALID"))
        return tape.gradient(loss, x)

    with (
        pytest.raises(RunError, match="MaxPool gradient ops do not yet have") as caught,
        explain_refusals(),
    ):
        gradient(tf.ones((1, 4, 4, 1)))
    assert "xla = false" in caught.value.action


@pytest.mark.parametrize(
    ("deterministic", "xla", "device", "asked"),
    [
        (True, False, "cpu", True),
        (True, True, "cpu", False),
        (True, False, "gpu", True),
        (True, True, "gpu", True),
        (False, True, "gpu", False),
        (False, False, "cpu", False),
    ],
)
def test_tensorflow_is_asked_for_determinism_with_xla_on_gpus_too(
    deterministic, xla, device, asked
):
    assert op_determinism(deterministic=deterministic, xla=xla, device=device) == asked


@pytest.mark.parametrize(
    ("precision", "allowed"),
    [("float32", False), ("tf32", True), ("mixed_float16", False)],
)
def test_tensor_float_is_allowed_by_its_own_precision_alone(
    framework, precision, allowed
):
    try:
        set_arithmetic(0, precision)
        assert (
            framework.config.experimental.tensor_float_32_execution_enabled() == allowed
        )
        assert keras.config.dtype_policy().name == (
            "float32" if precision == "tf32" else precision
        )
        assert keras.config.floatx() == "float32"
    finally:
        set_arithmetic(0, "float32")


@pytest.mark.parametrize(
    ("precision", "device", "capability", "override", "word"),
    [
        ("tf32", "cpu", None, None, "a CPU"),
        ("tf32", "gpu", (7, 0), None, "capability 7.0"),
        ("tf32", "gpu", (9, 0), "0", "NVIDIA_TF32_OVERRIDE=0"),
        ("float32", "gpu", (9, 0), "1", "NVIDIA_TF32_OVERRIDE=1"),
        ("tf32", "gpu", (8, 0), None, None),
        ("tf32", "gpu", None, None, None),
        ("float32", "gpu", (7, 0), "0", None),
        ("float32", "cpu", None, "1", None),
        ("float32", "gpu", (9, 0), "", None),
    ],
)
def test_a_worker_refuses_what_would_compute_in_another_precision(
    precision, device, capability, override, word
):
    with pytest.raises(UserError, match=word) if word else nullcontext():
        refuse_other_arithmetic(precision, device, capability, override)
