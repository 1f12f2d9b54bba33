"""TensorFlow as an engine: setting up a worker process, and the parts that a run uses."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.config.point import Point
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Joined
from scalestudy.engines.interface import Engine, StepTrial
from scalestudy.engines.keras.arithmetic import (
    OVERRIDE,
    refuse_other_arithmetic,
    set_seed_and_precision,
)
from scalestudy.engines.keras.export import export_model
from scalestudy.engines.keras.inference import KerasInference, open_inference
from scalestudy.engines.keras.model_files import load_model
from scalestudy.engines.keras.private import forbid_downloads
from scalestudy.engines.tensorflow.installation import explain_missing_gpus, gpu_log
from scalestudy.engines.tensorflow.replicas import without_exchange
from scalestudy.engines.tensorflow.trainer import TensorFlowTrainer
from scalestudy.hardware.no_gpus import Build, Reason, why_not_listed
from scalestudy.store.model_record import ModelRecord


def configure_tensorflow(
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
    # Replicas need a device each, and TensorFlow takes the CPU as one.
    if cpu_devices > 1:
        lone = tf.config.list_physical_devices("CPU")[0]
        logical = [tf.config.LogicalDeviceConfiguration()] * cpu_devices
        tf.config.set_logical_device_configuration(lone, logical)
    if deterministic:
        tf.config.experimental.enable_op_determinism()


def set_arithmetic(seed: int, precision: str) -> None:
    """Set seeds and precision for all that is built from now on.

    TensorFloat-32 is enabled only for the precision "tf32". By default TensorFlow uses it for float32 on GPUs
    since Ampere, where "float32" would then differ from the arithmetic on a V100.
    """
    set_seed_and_precision(seed, precision)
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


class TensorFlow:
    """The TensorFlow engine; see `Engine`."""

    def set_up(
        self,
        point: Point,
        *,
        threads: int,
        device: str,
    ) -> None:
        """Set devices, threads, determinism, seeds and precision, and forbid downloads in workers."""
        precision = point.train.precision
        override = os.environ.get(OVERRIDE)
        capability = capability_of_gpus() if device == "gpu" else None
        refuse_other_arithmetic(precision, device, capability, override)
        lanes = point.traits.workers_at_once(point.workers)
        at_once = 1
        if point.workers > 1:
            # Replicas of a process, and collectives, must be able to wait for each other concurrently.
            at_once = max(2, lanes)
        cpu_devices = 1
        if device == "cpu":
            cpu_devices = lanes
        configure_tensorflow(
            threads=threads,
            at_once=at_once,
            cpu_devices=cpu_devices,
            deterministic=op_determinism(
                deterministic=point.train.deterministic,
                xla=point.train.xla,
                device=device,
            ),
        )
        set_arithmetic(point.seed, precision)
        forbid_downloads()

    def devices(self, device: str) -> list[str]:
        listed = tf.config.list_physical_devices(device.upper())
        if device == "cpu":
            return [cpu.name for cpu in listed]
        details = tf.config.experimental.get_device_details
        return [str(details(gpu).get("device_name", gpu.name)) for gpu in listed]

    def why_missing(self) -> Reason:
        info = tf.sysconfig.get_build_info()
        name = f"TensorFlow {tf.__version__}"
        if not info.get("is_cuda_build"):
            return why_not_listed(Build(name, None), None)
        cuda = str(info.get("cuda_version", ""))
        reason = explain_missing_gpus(gpu_log()) if cuda else None
        return why_not_listed(Build(name, cuda), reason)

    def build_record(self) -> dict[str, Any]:
        info = tf.sysconfig.get_build_info()
        keys = ("cuda_version", "cudnn_version", "is_cuda_build", "is_rocm_build")
        return {"tensorflow": {key: info[key] for key in keys if key in info}}

    def gpu_memory(self, device: str) -> list[tuple[int | None, int | None]]:
        if device == "cpu":
            return []
        return [
            (_peak(gpu.name), None) for gpu in tf.config.list_logical_devices("GPU")
        ]

    def trainer(
        self,
        point: Point,
        prepared: Prepared,
        rates: NDArray[np.float64],
        joined: Joined,
    ) -> TensorFlowTrainer:
        return TensorFlowTrainer(point, prepared, rates, joined)

    def without_exchange(self, joined: Joined) -> Joined:
        return without_exchange(joined)

    def inference(self, path: str, record: ModelRecord) -> KerasInference:
        return open_inference(path, record, tf.function)

    def export(
        self,
        path: str,
        record: ModelRecord,
        out: str,
        form: str,
    ) -> None:
        export_model(load_model(path, record), record, out, form)

    def try_step(
        self,
        compute: Callable[[], tuple[Any, Any]],
        variables: Sequence[Any],
    ) -> StepTrial:
        values = [variable.value for variable in variables]
        reached: list[bool] = []
        stray: list[str] = []

        def step() -> Any:
            reached.clear()  # TensorFlow may trace it twice
            stray.clear()
            with tf.GradientTape() as tape:
                objective, losses = compute()
            # By identity: variables of TensorFlow compare by value.
            known = {id(value) for value in values}
            for variable in tape.watched_variables():
                if id(variable) not in known:
                    stray.append(variable.name)
            gradients = tape.gradient(objective, values)
            for gradient in gradients:
                reached.append(gradient is not None)
            return losses

        losses = np.asarray(tf.function(step, autograph=False)())
        return StepTrial(losses, reached, next(iter(stray), None))


def _peak(device: str) -> int | None:
    try:
        return int(tf.config.experimental.get_memory_info(device)["peak"])
    except (
        ValueError,
        KeyError,
        tf.errors.OpError,
    ):  # from allocators without counters
        return None


ENGINE: Engine = TensorFlow()
