"""TensorFlow's MultiWorkerMirroredStrategy: a process for each worker."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.strategies.distributed import SUM, Distributed

IMPLEMENTATIONS = {
    "auto": tf.distribute.experimental.CommunicationImplementation.AUTO,
    "ring": tf.distribute.experimental.CommunicationImplementation.RING,
    "nccl": tf.distribute.experimental.CommunicationImplementation.NCCL,
}


class MultiWorker(Distributed):
    """One worker in each process; TF_CONFIG must be set before TensorFlow is imported.

    Args:
        placement: This process among the others.
        communication: "auto", "ring" or "nccl".
        sync_batch_norm: Whether batch normalisation spans the workers.
    """

    name = "multiworker"

    def __init__(self, placement: Placement, *, communication: str, sync_batch_norm: bool) -> None:
        options = tf.distribute.experimental.CommunicationOptions(
            implementation=IMPLEMENTATIONS[communication]
        )
        strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
        super().__init__(strategy, placement.size, sync_batch_norm=sync_batch_norm)
        self._rank = placement.rank

    @property
    def rank(self) -> int:
        """Rank of this process."""
        return self._rank

    @property
    def processes(self) -> int:
        """One process a worker."""
        return self.workers

    def slices(self) -> list[tuple[int, int]]:
        """This process's own worker."""
        return [(self._rank, self._rank + 1)]

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over processes by TensorFlow's own collective."""
        if self.workers == 1:
            return values
        return np.asarray(self.tensor_sum(tf.constant(values)).numpy())

    def tensor_sum(self, tensor: Any) -> Any:
        """Sum over processes by TensorFlow's own collective; compiled for each shape."""
        return self._summed(tensor)

    @functools.cached_property
    def _summed(self) -> Callable[[Any], Any]:
        def all_reduce(tensor: Any) -> Any:
            # The identity puts the tensor on the replica's device, which the all-reduce asks for.
            return tf.distribute.get_replica_context().all_reduce(SUM, tf.identity(tensor))

        def summed(tensor: Any) -> Any:
            result = self.strategy.run(all_reduce, args=(tensor,))
            return self.strategy.experimental_local_results(result)[0]

        return tf.function(summed, autograph=False)
