"""TensorFlow's MultiWorkerMirroredStrategy: a process for each worker."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.engines.buckets import Buckets, summed
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.strategies.distributed import SUM, Distributed
from scalestudy.engines.tensorflow.strategies.replicas import CompiledReplicas, Gradients, TensorGroup

COMMUNICATION = {
    "auto": tf.distribute.experimental.CommunicationImplementation.AUTO,
    "ring": tf.distribute.experimental.CommunicationImplementation.RING,
    "nccl": tf.distribute.experimental.CommunicationImplementation.NCCL,
}


def join(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """One worker in each process; TF_CONFIG must be set before TensorFlow is imported.

    Args:
        placement: This process among the others.
        workers: Workers of the run.
        device: "cpu" or "gpu".
        communication: "auto", "ring" or "nccl".
    """
    chosen = resolved(communication, device)
    options = tf.distribute.experimental.CommunicationOptions(implementation=COMMUNICATION[chosen])
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    group = CollectiveGroup(strategy, placement, chosen)
    own = [(placement.rank, placement.rank + 1)]
    return Joined(group, Distributed(strategy, group, placement.size, slices=own, size=placement.size))


def resolved(communication: str, device: str) -> str:
    """What `launch.communication` comes to: TensorFlow takes NCCL only when it is told, not by AUTO."""
    return "nccl" if (communication, device) == ("auto", "gpu") else communication


class CollectiveGroup(TensorGroup):
    """Processes that add up by TensorFlow's own collectives.

    Args:
        strategy: TensorFlow's strategy, with one device a process.
        placement: This process among the others.
        communication: As in `COMMUNICATION`.
    """

    def __init__(self, strategy: tf.distribute.Strategy, placement: Placement, communication: str) -> None:
        super().__init__(placement.rank, placement.size, communication=communication)
        self._strategy = strategy
        self._compiled: dict[Any, Callable[[Any], Any]] = {}

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        if self.size == 1:
            return values
        return np.asarray(self.tensor_sum(tf.constant(values)).numpy())

    def tensor_sum(self, tensor: Any) -> Any:
        """Sum over processes by TensorFlow's own collective; compiled for each shape."""
        form = tensor.dtype, tuple(tensor.shape)
        if form not in self._compiled:
            function = tf.function(self._summed, autograph=False)
            # Concrete, or TensorFlow would warn that it is compiled for one shape after the other.
            self._compiled[form] = function.get_concrete_function(tf.TensorSpec(tensor.shape, tensor.dtype))
        return self._compiled[form](tensor)

    def _summed(self, tensor: Any) -> Any:
        def all_reduce(own: Any) -> Any:
            # The identity puts the tensor on the replica's device, which the all-reduce asks for.
            return tf.distribute.get_replica_context().all_reduce(SUM, tf.identity(own))

        result = self._strategy.run(all_reduce, args=(tensor,))
        return self._strategy.experimental_local_results(result)[0]


class CollectiveReplicas(CompiledReplicas):
    """One device a process, whose variables are its own: they need not be made in TensorFlow's scope."""

    def __init__(self, group: CollectiveGroup, strategy: tf.distribute.Strategy) -> None:
        super().__init__(group, group.size, slices=[(group.rank, group.rank + 1)], size=group.size)
        self._strategy = strategy

    def sum_gradients(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        return summed(gradients, buckets, self._summed)

    def sync_sum(self, tensor: Any) -> Any:
        """TensorFlow's all-reduce. Its own gradient is one only within a replica: here it is said."""

        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def total(own: Any) -> Any:
            return self._summed([own])[0], lambda upstream: self._summed([upstream])[0]

        return total(tensor)

    def _summed(self, tensors: list[Any]) -> list[Any]:
        def all_reduce(*parts: Any) -> Any:
            own = [tf.identity(part) for part in parts]
            return tf.distribute.get_replica_context().all_reduce(SUM, own)

        return list(self._strategy.run(all_reduce, args=tuple(tensors)))


def outside_scope(joined: Joined) -> Joined:
    """The same workers, for a model whose variables were made outside of TensorFlow's scope."""
    group, replicas = joined
    if not isinstance(group, CollectiveGroup):
        return joined
    assert isinstance(replicas, Distributed)
    return Joined(group, CollectiveReplicas(group, replicas.strategy))
