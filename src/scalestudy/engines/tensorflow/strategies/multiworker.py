"""TensorFlow's MultiWorkerMirroredStrategy: a process for each worker, and TensorFlow's collectives."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.engines.buckets import Buckets, summed
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.gradients import Gradients
from scalestudy.engines.tensorflow.strategies.replicas import CompiledReplicas, TensorGroup

COMMUNICATION = {
    "auto": tf.distribute.experimental.CommunicationImplementation.AUTO,
    "ring": tf.distribute.experimental.CommunicationImplementation.RING,
    "nccl": tf.distribute.experimental.CommunicationImplementation.NCCL,
}

HOSTS = 2**30
"""Key of the collective group of all CPUs; the strategy numbers its own groups from 1."""


def join(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """Join with one worker in each process. TF_CONFIG must be set before TensorFlow is imported.

    On GPUs "auto" selects NCCL, because TensorFlow's AUTO does not.
    """
    chosen = "nccl" if (communication, device) == ("auto", "gpu") else communication
    options = tf.distribute.experimental.CommunicationOptions(implementation=COMMUNICATION[chosen])
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    group = CollectiveGroup(strategy, placement, chosen)
    return Joined(group, CollectiveReplicas(group))


class CollectiveGroup(TensorGroup):
    """Processes that sum by TensorFlow's collectives, with one device per process."""

    def __init__(self, strategy: tf.distribute.Strategy, placement: Placement, communication: str) -> None:
        super().__init__(placement.rank, placement.size, communication=communication)
        self._strategy = strategy
        self._compiled: dict[Any, Callable[[Any], Any]] = {}
        self._of_hosts: dict[Any, Callable[[Any], Any]] = {}

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over processes in host memory; on a GPU, the sum would wait for all work queued there."""
        if self.size == 1:
            return values
        form = values.dtype, values.shape
        with tf.device("CPU:0"):
            if form not in self._of_hosts:
                function = tf.function(partial(self._ring, number=len(self._of_hosts)), autograph=False)
                self._of_hosts[form] = function.get_concrete_function(
                    tf.TensorSpec(values.shape, values.dtype)
                )
            return np.asarray(self._of_hosts[form](tf.constant(values)).numpy())

    def _ring(self, value: Any, number: int) -> Any:
        """Sum a CPU tensor over processes. `number` of a shape is the same on every rank. Compiled."""
        with tf.device("CPU:0"):
            return tf.raw_ops.CollectiveReduceV2(
                input=value,
                group_size=self.size,
                group_key=HOSTS,
                instance_key=number,
                ordering_token=[],
                merge_op="Add",
                final_op="Id",
                communication_hint="ring",
            )

    def tensor_sum(self, tensor: Any) -> Any:
        """Sum a tensor over processes by TensorFlow's collective; compiled for each shape."""
        form = tensor.dtype, tuple(tensor.shape)
        if form not in self._compiled:
            function = tf.function(lambda value: self.all_reduced([value])[0], autograph=False)
            # A concrete function, because TensorFlow warns of functions retraced for many shapes.
            self._compiled[form] = function.get_concrete_function(tf.TensorSpec(tensor.shape, tensor.dtype))
        return self._compiled[form](tensor)

    def all_reduced(self, tensors: list[Any]) -> list[Any]:
        """Sum tensors over processes in one collective. Compiled."""

        def all_reduce(*parts: Any) -> Any:
            # The identity places a tensor on the replica's device, as the all-reduce requires.
            values = [tf.identity(part) for part in parts]
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)

        return list(self._strategy.run(all_reduce, args=tuple(tensors)))


class CollectiveReplicas(CompiledReplicas):
    """One device per process, with plain variables: TensorFlow's scope would only slow down their updates."""

    group: CollectiveGroup
    overlaps_once = True

    def __init__(self, group: CollectiveGroup) -> None:
        super().__init__(group, group.size, slices=[(group.rank, group.rank + 1)], size=group.size)

    def sum_gradients(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        return summed(gradients, buckets, self.group.all_reduced)

    def sync_sum(self, tensor: Any) -> Any:
        """Sum by TensorFlow's all-reduce, with an explicit gradient: outside a replica, it has none."""

        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def total(value: Any) -> Any:
            (result,) = self.group.all_reduced([value])
            return result, lambda upstream: self.group.all_reduced([upstream])[0]

        return total(tensor)
