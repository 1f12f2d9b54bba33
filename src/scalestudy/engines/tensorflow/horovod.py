"""Horovod: a process for each worker, all-reduce by Gloo, NCCL or MPI."""

from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.engines.buckets import Buckets, sum_gradients
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow import horovod_rendezvous
from scalestudy.engines.tensorflow.replicas import (
    CompiledReplicas,
    Gradients,
    TensorGroup,
)
from scalestudy.util.errors import UserError


def join(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join with one worker in each process.

    Raises:
        UserError: If Horovod reports a rank or size other than the launcher's.
        RunError: If the processes do not reach each other.
    """
    horovod_rendezvous.join(placement, device=device)
    hvd.init()
    # Built with MPI and started by another launcher, Horovod makes of n processes n runs of one, silently.
    if (hvd.rank(), hvd.size()) != (placement.rank, placement.size):
        raise UserError(
            f"Horovod to be rank {placement.rank} of {placement.size}, as {placement.source} says",
            f"rank {hvd.rank()} of {hvd.size()}",
            "Build Horovod with the controller that the launcher uses (Gloo, or MPI under mpirun).",
        )
    by = _controller()
    if device == "gpu" and hvd.nccl_built():
        by = "nccl"
    group = HorovodGroup(placement.rank, placement.size, communication=by)
    slices = [(placement.rank, placement.rank + 1)]
    return Joined(
        group,
        HorovodReplicas(group, placement.size, slices=slices, size=placement.size),
    )


def built() -> dict[str, bool]:
    """Return what Horovod's library was built with, without starting Horovod."""
    return {
        "gloo": bool(hvd.gloo_built()),
        "mpi": bool(hvd.mpi_built()),
        "nccl": bool(hvd.nccl_built()),
    }


def _controller() -> str:
    """Return how Horovod's processes agree on what to exchange."""
    if hvd.mpi_enabled():
        return "mpi"
    return "gloo"


class HorovodGroup(TensorGroup):
    """The processes that Horovod connects."""

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over processes in host memory by Gloo or MPI; NCCL needs a separate GPU for each process."""
        with tf.device("CPU:0"):
            return np.asarray(
                hvd.allreduce(tf.constant(values), op=hvd.Sum, name="host_sum").numpy()
            )

    def tensor_sum(self, tensor: Any) -> Any:
        return hvd.allreduce(tensor, op=hvd.Sum, name="tensor_sum")

    def build_record(self) -> dict[str, Any]:
        return {"horovod": {**built(), "controller": _controller()}}

    def close(self) -> None:
        """Shut Horovod down, so that no rank waits for one that has exited."""
        hvd.shutdown()


class HorovodReplicas(CompiledReplicas):
    """One device per process.

    Horovod exchanges each bucket of gradients as a separate group (see `horovod_rendezvous.tuning`), so that
    the order of sums is fixed and runs repeat bit for bit.
    """

    def sum_gradients(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        # A sum over one worker would only copy.
        if self.workers == 1:
            return gradients
        form = hvd.Compression.none
        if self.compressed:
            form = hvd.Compression.fp16
        return sum_gradients(
            gradients,
            buckets,
            lambda part: hvd.grouped_allreduce(part, op=hvd.Sum, compression=form),
        )

    def sync_sum(self, tensor: Any) -> Any:
        """Sum by Horovod's all-reduce, whose gradient is an all-reduce."""
        return hvd.allreduce(tensor, op=hvd.Sum)
