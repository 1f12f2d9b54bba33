"""Horovod: a process for each worker, all-reduce by Gloo, NCCL or MPI."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.errors import UserError
from scalestudy.strategies.base import Gradients, Strategy


class Horovod(Strategy):
    """One worker in each process. The rendezvous must be reachable (see `rendezvous`).

    Gradients go in one group, so that their sums are taken in one order and runs repeat bit for bit.

    Args:
        placement: This process among the others.
        sync_batch_norm: Whether batch normalisation spans the workers.

    Raises:
        UserError: If Horovod sees another number of processes than the launcher started.
    """

    name = "horovod"

    def __init__(self, placement: Placement, *, sync_batch_norm: bool) -> None:
        super().__init__(placement.size, sync_batch_norm=sync_batch_norm)
        import horovod.tensorflow as hvd

        self._hvd = hvd
        hvd.init()
        if (hvd.rank(), hvd.size()) != (placement.rank, placement.size):
            raise UserError(
                f"Horovod to be rank {placement.rank} of {placement.size}, as {placement.source} says",
                f"rank {hvd.rank()} of {hvd.size()}",
                "Build Horovod with the controller that the launcher uses (Gloo, or MPI under mpirun).",
            )

    @property
    def rank(self) -> int:
        """Rank of this process."""
        return int(self._hvd.rank())

    @property
    def processes(self) -> int:
        """One process a worker."""
        return self.workers

    @property
    def replicas(self) -> int:
        """One copy a process."""
        return self.workers

    def slices(self) -> list[tuple[int, int]]:
        """This process's own worker."""
        return [(self.rank, self.rank + 1)]

    def sum_gradients(self, gradients: Gradients) -> Gradients:
        """All-reduce, as one group."""
        if self.workers == 1:
            return gradients
        return list(self._hvd.grouped_allreduce(gradients, op=self._hvd.Sum))

    def sync_sum(self) -> Callable[[Any], Any] | None:
        """Horovod's all-reduce, whose gradient is an all-reduce."""
        if not self.sync_batch_norm:
            return None
        return lambda tensor: self._hvd.allreduce(tensor, op=self._hvd.Sum)

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over processes."""
        return np.asarray(self._hvd.allreduce(tf.constant(values), op=self._hvd.Sum, name="host_sum").numpy())

    def tensor_sum(self, tensor: Any) -> Any:
        """Sum over processes."""
        return self._hvd.allreduce(tensor, op=self._hvd.Sum, name="tensor_sum")

    def broadcast(self, variables: Sequence[Any]) -> None:
        """Rank 0's values to all."""
        self._hvd.broadcast_variables(list(variables), root_rank=0)

    def close(self) -> None:
        """Shut Horovod down, so that no rank waits for one that has left."""
        self._hvd.shutdown()
