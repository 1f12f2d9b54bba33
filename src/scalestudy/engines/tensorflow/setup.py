"""Setting TensorFlow up in a process, before it computes: afterwards devices and threads are fixed."""

import tensorflow as tf

from scalestudy.engines.keras.layers import begin as begin_keras


def set_up(
    *,
    threads: int | None = None, at_once: int | None = None, cpu_devices: int = 1, deterministic: bool = True,
) -> None:  # fmt: skip
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
    begin_keras(seed, precision)
    tf.config.experimental.enable_tensor_float_32_execution(precision == "tf32")


def op_determinism(*, deterministic: bool, xla: bool, device: str) -> bool:
    """Whether TensorFlow is asked for determinism.

    On GPUs it hands that on to XLA, which else chooses kernels by their times and adds up in any order. On
    CPUs XLA computes in one order anyway, and refuses max-pooling when told to be deterministic.
    """
    return deterministic and not (xla and device == "cpu")


def capability_of_gpus() -> tuple[int, int] | None:
    """Lowest compute capability of the GPUs that TensorFlow sees; None where it says none."""
    details = tf.config.experimental.get_device_details
    gpus = tf.config.list_physical_devices("GPU")
    capabilities = [details(gpu).get("compute_capability") for gpu in gpus]
    return min(filter(None, capabilities), default=None)
