"""Setting up TensorFlow in a process before it computes; afterwards devices and threads are fixed."""

import tensorflow as tf

from scalestudy.engines.keras.layers import begin as begin_keras


def set_up(
    *,
    threads: int | None = None,
    at_once: int | None = None,
    cpu_devices: int = 1,
    deterministic: bool = True,
) -> None:
    """Set CPU devices, threads per operation, concurrent operations and determinism. Once per process."""
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
    """Set seeds and precision for all that is built from now on.

    TensorFloat-32 is enabled only for the precision "tf32". By default TensorFlow uses it for float32 on GPUs
    since Ampere, where "float32" would then differ from the arithmetic on a V100.
    """
    begin_keras(seed, precision)
    tf.config.experimental.enable_tensor_float_32_execution(precision == "tf32")


def op_determinism(*, deterministic: bool, xla: bool, device: str) -> bool:
    """Return whether to enable TensorFlow's determinism.

    On GPUs TensorFlow passes it on to XLA, which otherwise selects kernels by timing and sums in any order.
    On CPUs XLA is deterministic anyway, and rejects max-pooling if determinism is enabled.
    """
    return deterministic and not (xla and device == "cpu")


def capability_of_gpus() -> tuple[int, int] | None:
    """Return the lowest compute capability of the GPUs that TensorFlow lists, or None if unknown."""
    details = tf.config.experimental.get_device_details
    gpus = tf.config.list_physical_devices("GPU")
    capabilities = [details(gpu).get("compute_capability") for gpu in gpus]
    return min(filter(None, capabilities), default=None)
