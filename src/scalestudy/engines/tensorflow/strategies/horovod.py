"""Horovod: a process for each worker, all-reduce by Gloo, NCCL or MPI."""

from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.engines.buckets import Buckets, summed
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.strategies import horovod_rendezvous
from scalestudy.engines.tensorflow.strategies.replicas import CompiledReplicas, Gradients, TensorGroup
from scalestudy.util.errors import UserError


def join(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """One worker in each process.

    Raises:
        UserError: If Horovod sees another number of processes than the launcher started.
        RunError: If they do not find each other.
    """
    horovod_rendezvous.join(placement, device=device)
    hvd.init()
    if (hvd.rank(), hvd.size()) != (placement.rank, placement.size):
        raise UserError(
            f"Horovod to be rank {placement.rank} of {placement.size}, as {placement.source} says",
            f"rank {hvd.rank()} of {hvd.size()}",
            "Build Horovod with the controller that the launcher uses (Gloo, or MPI under mpirun).",
        )
    controller = "mpi" if hvd.mpi_enabled() else "gloo"
    by = "nccl" if device == "gpu" and hvd.nccl_built() else controller
    group = HorovodGroup(placement.rank, placement.size, communication=by)
    slices = [(placement.rank, placement.rank + 1)]
    return Joined(group, HorovodReplicas(group, placement.size, slices=slices, size=placement.size))


def built() -> dict[str, bool]:
    """What Horovod's library was built with. Starts nothing."""
    return {"gloo": bool(hvd.gloo_built()), "mpi": bool(hvd.mpi_built()), "nccl": bool(hvd.nccl_built())}


class HorovodGroup(TensorGroup):
    """Processes that Horovod holds together."""

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over processes in the host's memory, by Gloo or MPI: NCCL sums for GPUs of their own alone."""
        with tf.device("CPU:0"):
            return np.asarray(hvd.allreduce(tf.constant(values), op=hvd.Sum, name="host_sum").numpy())

    def tensor_sum(self, tensor: Any) -> Any:
        return hvd.allreduce(tensor, op=hvd.Sum, name="tensor_sum")

    def build_record(self) -> dict[str, Any]:
        """How Horovod was built, and the controller that it uses."""
        return {"horovod": {**built(), "controller": "mpi" if hvd.mpi_enabled() else "gloo"}}

    def close(self) -> None:
        """Shut Horovod down, so that no rank waits for one that has left."""
        hvd.shutdown()


class HorovodReplicas(CompiledReplicas):
    """One device a process.

    A bucket of gradients is a group that Horovod exchanges alone (see `rendezvous`), so that sums are
    taken in one order and runs repeat bit for bit.
    """

    def sum_gradients(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        if self.workers == 1:
            return gradients
        return summed(gradients, buckets, lambda part: hvd.grouped_allreduce(part, op=hvd.Sum))

    def sync_sum(self, tensor: Any) -> Any:
        """Horovod's all-reduce, whose gradient is an all-reduce."""
        return hvd.allreduce(tensor, op=hvd.Sum)
