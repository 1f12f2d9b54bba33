"""Setting TensorFlow up in a process, before it computes: afterwards, its devices and threads are fixed."""

import keras
import tensorflow as tf

from scalestudy.engines.keras.precision import set_precision
from scalestudy.engines.tensorflow.tensor_float import set_tensor_float


def set_up(
    *,
    threads: int | None = None,
    at_once: int | None = None,
    cpu_devices: int = 1,
    deterministic: bool = True,
) -> None:
    """Devices, threads and determinism; once a process.

    Args:
        threads: Threads of one operation; None for TensorFlow's choice.
        at_once: Operations that may run beside each other; None for TensorFlow's choice.
        cpu_devices: Logical CPU devices.
        deterministic: Whether operations must repeat bit for bit.
    """
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
    """Seeds and precision of what is built from now on."""
    keras.utils.set_random_seed(seed)
    set_precision(precision)
    set_tensor_float(precision)
