"""Measuring a TensorFlow or Keras script: what its processes have joined, and the clock of its device."""

import hashlib
import sys
import time
from typing import Any, NamedTuple

import tensorflow as tf

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Group
from scalestudy.engines.keras.fit_callback import keras_callback
from scalestudy.engines.script_group import OneProcess, SecretGroup


class KerasScript:
    """A process of a TensorFlow or Keras script that is measured; see `engines.torch.script`.

    Args:
        placement: Placement of this process.
        gpu: Index of its GPU among the visible GPUs; None on CPUs.
        alone: Whether it joins no other processes.
    """

    keras_callback = staticmethod(keras_callback)

    def __init__(
        self,
        placement: Placement,
        gpu: int | None,
        *,
        alone: bool = False,
    ) -> None:
        self.group: Group = OneProcess()
        if placement.size > 1 and not alone:
            self.group = SecretGroup(placement)
        self.device = "cpu"
        if gpu is not None:
            self.device = f"GPU:{gpu}"
        self.threads = tf.config.threading.get_intra_op_parallelism_threads()
        self._gpu = gpu is not None
        self._model: Any = None
        self._first = self._last = _now()

    def begin(self) -> None:
        """Wait for the device, then start timing."""
        self._wait()
        self._first = self._last = _now()

    def mark(self) -> None:
        """Set the end of the timed interval after all work given to the device so far."""
        self._wait()
        self._last = _now()

    def seconds(self) -> tuple[float, float]:
        """Return the seconds from `begin` to the last `mark`, and this process's CPU seconds in between."""
        wall = self._last.wall - self._first.wall
        used = self._last.used - self._first.used
        return wall, used

    def scalar(self, value: Any) -> float:
        return float(value)

    def parameters(self, model: Any) -> int:
        count = 0
        for variable in model.trainable_variables:
            count += int(variable.numpy().size)
        return count

    def digest(self, model: Any) -> str:
        """Return the SHA-256 of a model's trainable parameters. Moving statistics may differ by rank."""
        # `communication` asks it for its strategy, which a script makes by itself.
        self._model = model
        words = hashlib.sha256()
        for variable in model.trainable_variables:
            words.update(variable.numpy().tobytes())
        return words.hexdigest()

    def devices(self) -> list[str]:
        if not self._gpu:
            return ["cpu"]
        names = []
        for gpu in tf.config.get_visible_devices("GPU"):
            details = tf.config.experimental.get_device_details(gpu)
            names.append(str(details.get("device_name", "gpu")))
        return names

    def build_record(self) -> dict[str, Any]:
        return {"tensorflow": dict(tf.sysconfig.get_build_info())}

    def joined(self, model: Any) -> int | None:
        """Return the workers whose gradients are combined: Horovod's size, or a strategy's replicas.

        None for a loop without a Keras model, whose strategy is not known here.
        """
        horovod = _horovod()
        strategy = _strategy(model)
        if horovod is not None:
            return int(horovod.size())
        if strategy is None:
            return None
        return int(strategy.num_replicas_in_sync)

    def communication(self) -> str | None:
        """Return what sums the gradients, if it is known."""
        horovod = _horovod()
        if horovod is not None and horovod.size() > 1:
            if self._gpu and horovod.nccl_built():
                return "nccl"
            return "mpi" if horovod.mpi_enabled() else "gloo"
        strategy = _strategy(self._model)
        if strategy is not None and strategy.num_replicas_in_sync > 1 and not self._gpu:
            return "ring"  # whatever a script asks for, CPUs sum in rings
        return None

    def _wait(self) -> None:
        # A GPU computes later than the host asks it to.
        if self._gpu:
            tf.test.experimental.sync_devices()


def _horovod() -> Any:
    """Return Horovod if the script has started it."""
    horovod = sys.modules.get("horovod.tensorflow")
    if horovod is None or not horovod.is_initialized():
        return None
    return horovod


def _strategy(model: Any) -> Any:
    """Return the strategy under which a Keras model was made; None for anything else."""
    return getattr(model, "distribute_strategy", None)


class _Moment(NamedTuple):
    """Wall time and CPU time of this process, in seconds."""

    wall: float
    used: float


def _now() -> _Moment:
    return _Moment(time.perf_counter(), time.process_time())
