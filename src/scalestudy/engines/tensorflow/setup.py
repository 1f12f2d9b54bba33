"""Setting up the framework of a worker, once it is imported."""

from typing import Any

import keras
import tensorflow as tf

from scalestudy.engines.keras.offline import forbid_downloads
from scalestudy.engines.tensorflow.precision import set_precision
from scalestudy.study.point import Point


def configure(point: Point, *, threads: int) -> None:
    """Threads, determinism, seeds and precision; before any device is used.

    Args:
        point: What is run.
        threads: Cores granted to this process.
    """
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    # Replicas of one process, and collectives, must be able to wait beside each other.
    lanes = point.traits.workers_at_once(point.workers)
    tf.config.threading.set_inter_op_parallelism_threads(max(2, lanes) if point.workers > 1 else 1)
    # XLA computes in one order on CPUs anyway, and refuses max-pooling when told to be deterministic.
    if point.train.deterministic and not point.train.xla:
        tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(point.seed)
    set_precision(point.train.precision)
    forbid_downloads()


def devices(device: str) -> list[str]:
    """Names of the physical devices in use."""
    found = tf.config.list_physical_devices(device.upper())
    if device == "cpu":
        return [each.name for each in found]
    return [
        str(tf.config.experimental.get_device_details(each).get("device_name", each.name)) for each in found
    ]


def build_record(library: str | None) -> dict[str, Any]:
    """How TensorFlow, and the library of a strategy (Horovod) where it has one, were built."""
    info = tf.sysconfig.get_build_info()
    keys = ("cuda_version", "cudnn_version", "is_cuda_build", "is_rocm_build")
    record: dict[str, Any] = {"tensorflow": {key: info[key] for key in keys if key in info}}
    if library == "horovod":
        import horovod.tensorflow as hvd

        record["horovod"] = {
            "gloo": bool(hvd.gloo_built()), "mpi": bool(hvd.mpi_built()), "nccl": bool(hvd.nccl_built()),
            "controller": "mpi" if hvd.mpi_enabled() else "gloo",
        }  # fmt: skip
    return record
