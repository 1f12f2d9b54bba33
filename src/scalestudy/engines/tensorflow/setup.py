"""Setting TensorFlow up in a process, before it computes: afterwards devices and threads are fixed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf

from scalestudy.study.feasible import TF32_NEEDS, without_tf32
from scalestudy.util.errors import RunError, UserError

OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""By this variable cuBLAS and cuDNN overrule what a program asks for: "0" switches TensorFloat-32 off."""
_REFUSAL = re.compile(
    r"[^.\n]*(?:\b(?:not|cannot|require)\b[^.\n]*determinis|determinis[^.\n]*\b(?:not|cannot)\b)[^.\n]*",
    re.IGNORECASE,
)
"""The sentence in which TensorFlow or XLA refuses an operation; there are several wordings."""


def set_up(
    *,
    threads: int | None = None,
    at_once: int | None = None,
    cpu_devices: int = 1,
    deterministic: bool = True,
) -> None:
    """Devices, threads of one operation, operations beside each other, and determinism; once a process."""
    if threads is not None:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    if at_once is not None:
        tf.config.threading.set_inter_op_parallelism_threads(at_once)
    if cpu_devices > 1:
        lone = tf.config.list_physical_devices("CPU")[0]
        logical = [tf.config.LogicalDeviceConfiguration()] * cpu_devices
        tf.config.set_logical_device_configuration(lone, logical)
    if deterministic:
        tf.config.experimental.enable_op_determinism()


def begin(seed: int, precision: str) -> None:
    """Seeds and precision of what is built from now on.

    TensorFloat-32, float32 to Keras, is a precision of its own: TensorFlow would take it for float32 on GPUs
    from Ampere, where "float32" would then mean another arithmetic than on a V100.
    """
    keras.utils.set_random_seed(seed)
    keras.config.set_floatx("float64" if precision == "float64" else "float32")
    keras.config.set_dtype_policy("float32" if precision == "tf32" else precision)
    tf.config.experimental.enable_tensor_float_32_execution(precision == "tf32")


def op_determinism(*, deterministic: bool, xla: bool, device: str) -> bool:
    """Whether TensorFlow is asked for determinism.

    On GPUs it hands that on to XLA, which else chooses kernels by their times and adds up in any order. On
    CPUs XLA computes in one order anyway, and refuses max-pooling when told to be deterministic.
    """
    return deterministic and not (xla and device == "cpu")


@contextmanager
def explained() -> Iterator[None]:
    """Within, an operation that TensorFlow refuses for its want of determinism ends the run by name.

    Raises:
        RunError: If one is refused; names the key to change.
    """
    try:
        yield
    except (tf.errors.OpError, RuntimeError) as error:
        match = _REFUSAL.search(str(error))
        if match is None:
            raise
        sentence = match.group().strip()
        key = "deterministic = false, or xla = false," if "XLA" in sentence else "deterministic = false"
        raise RunError(
            "operations that can repeat bit for bit, as train.deterministic = true asks",
            f"one that cannot: {sentence}",
            f"Set {key} under [train], or do without that operation in the task.",
        ) from error


def refuse_other_arithmetic(
    precision: str, device: str, capability: tuple[int, int] | None, override: str | None
) -> None:
    """Refuse a device or an environment that would compute in another precision than is asked for.

    `capability` is the GPUs' lowest, None where it is not known; `override` the value of `OVERRIDE`.

    Raises:
        UserError: If it is so.
    """
    lacking = without_tf32(precision, device, capability)
    if lacking is not None:
        raise UserError(TF32_NEEDS, lacking, 'Set precision = "float32".')
    if device == "gpu" and override and (override == "0") == (precision == "tf32"):
        raise UserError(
            f"{OVERRIDE} to be unset, since precision says what GPUs compute in",
            f'{OVERRIDE}={override} with precision = "{precision}"',
            f"Unset {OVERRIDE} in the job or the site profile.",
        )


def capability_of_gpus() -> tuple[int, int] | None:
    """Lowest compute capability of the GPUs that TensorFlow sees; None where it says none."""
    details = tf.config.experimental.get_device_details
    gpus = tf.config.list_physical_devices("GPU")
    capabilities = [details(gpu).get("compute_capability") for gpu in gpus]
    return min(filter(None, capabilities), default=None)
