"""Groups of processes that sum by torch.distributed (Gloo on hosts, NCCL on GPUs), and PyTorch strategies."""

import copy
import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Group, Joined, Replicas
from scalestudy.engines.rendezvous import (
    exchange_within,
    interface_of,
    listening,
    meeting_address,
    start_within,
)
from scalestudy.util.errors import RunError


class TorchGroup(Group):
    """The processes of a process group. The default is a single process."""

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        if self.size == 1:
            return values
        # A copy: the tensor shares the memory of its array, and the sum is written into it.
        total = torch.from_numpy(values.copy())
        dist.all_reduce(total)
        return total.numpy()

    def close(self) -> None:
        """Leave the process group after a barrier: a rank that left early would abort the others' sums."""
        if self.size > 1:
            dist.barrier()
            dist.destroy_process_group()


class TorchReplicas(Replicas):
    """One device and the exchange between its workers and others; see `Replicas`.

    Attributes:
        exchanges: Whether gradients are summed over processes.
    """

    group: TorchGroup

    def __init__(
        self,
        group: TorchGroup,
        workers: int,
        *,
        slices: list[tuple[int, int]],
    ) -> None:
        super().__init__(group, workers, slices=slices, size=group.size)
        self.exchanges = group.size > 1

    def sync_sum(self, tensor: Any) -> Any:
        """Sum a tensor over all workers from inside a worker's computation; differentiable."""
        if self.size == 1:
            return tensor
        if not self.exchanges:
            return tensor * self.workers
        summed: Any = _Sum.apply  # type: ignore[no-untyped-call]
        return summed(tensor)


class _Sum(torch.autograd.Function):
    """A sum over all workers. Each worker's value enters all losses, so gradients are summed as well."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        # The sum is written into its tensor, and the caller keeps this one.
        total = tensor.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        # Collectives take contiguous tensors only, which gradients need not be.
        total = upstream.contiguous().clone()
        dist.all_reduce(total)
        return total


def join_ddp(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join for the strategy "ddp": one worker in each process.

    Raises:
        RunError: If the processes do not reach each other.
    """
    by = None
    if placement.size > 1:
        by = "nccl" if device == "gpu" else "gloo"
    group = TorchGroup(placement.rank, placement.size, communication=by)
    if placement.size > 1:
        _meet(placement, device)
    own = (placement.rank, placement.rank + 1)
    return Joined(group, TorchReplicas(group, placement.size, slices=[own]))


def join_single(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join for the strategy "torch-single": one worker in one process."""
    return join_virtual(
        placement,
        workers=1,
        device=device,
        communication=communication,
    )


def join_virtual(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join for the strategy "torch-virtual": all workers in one process, computed in turn."""
    group = TorchGroup()
    return Joined(group, TorchReplicas(group, workers, slices=[(0, workers)]))


def without_exchange(joined: Joined) -> Joined:
    """Return the same workers without summing gradients; see `Engine.without_exchange`."""
    replicas = copy.copy(joined.replicas)
    assert isinstance(replicas, TorchReplicas)
    replicas.exchanges = False
    return Joined(joined.group, replicas)


def _meet(placement: Placement, device: str) -> None:
    """Create the process group. Rank 0 serves its store, on one interface."""
    assert placement.port is not None
    address = meeting_address(placement)
    interface = interface_of(placement, address)
    # A user's own setting stands.
    if interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    first = placement.rank == 0
    within = timedelta(seconds=start_within())
    backend = "gloo"
    on = None
    if device == "gpu":
        # NCCL sums nothing on hosts, where `host_sum` has its arrays.
        backend = "cpu:gloo,cuda:nccl"
        # NCCL then connects now, on this GPU, instead of in the first step on one that it guesses.
        on = torch.device("cuda:0")
    try:
        # Our own socket: PyTorch's store would listen on all interfaces.
        socket = None
        if first:
            # Detached: it belongs to the store from here on, and Python must not close it.
            socket = listening(address, placement.port).detach()
        store = dist.TCPStore(  # type: ignore[attr-defined]
            address,
            placement.port,
            placement.size,
            is_master=first,
            timeout=within,
            master_listen_fd=socket,
        )
        dist.init_process_group(
            backend,
            store=store,
            rank=placement.rank,
            world_size=placement.size,
            timeout=timedelta(seconds=exchange_within()),
            device_id=on,
        )
    except (OSError, RuntimeError) as error:
        raise RunError(
            f"{placement.size} processes to meet at {address}:{placement.port}",
            f"{type(error).__name__}: {str(error).splitlines()[0]}",
            "Look into rank 0's log; a firewall between the nodes looks the same.",
        ) from error
