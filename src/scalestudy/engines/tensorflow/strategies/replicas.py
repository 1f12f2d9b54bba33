"""Copies of the model in one process, and the strategies of one device: "single" and "virtual"."""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.data.loading.slices import Slice
from scalestudy.engines.buckets import Buckets
from scalestudy.engines.group import Group, Joined, Replicas

if TYPE_CHECKING:
    from scalestudy.engines.tensorflow.step import LossScale

Gradients = list[Any]
Gradient = Callable[[Slice], tuple[Gradients, Any]]
"""slice -> gradients of (sum of its losses / total), and the sum of its losses."""
Update = Callable[[Gradients], None]


class TensorGroup(Group):
    """Processes that also exchange tensors. The default is one process alone."""

    def tensor_sum(self, tensor: Any) -> Any:
        """Sum over processes of a tensor, where it lies, the same on every rank."""
        return tensor


class CompiledReplicas(Replicas):
    """Replicas whose step is compiled; see `Replicas`. The default is one worker on one device.

    What is marked as compiled is called while TensorFlow traces.
    """

    group: TensorGroup
    overlaps_once = False
    """Whether on GPUs only the first bucket's sum is under way while back-propagation goes on: TensorFlow's
    collectives wait for all that was begun before them."""
    copies_weights = True
    """Whether each device has a copy of the weights, which its worker alone updates."""

    @property
    def in_halves(self) -> bool:
        """Whether gradients are best exchanged in two buckets: here only the first one's sum is hidden."""
        return self.overlaps_once and self.group.communication == "nccl"

    def scope(self) -> AbstractContextManager[Any]:
        """Where the model and the optimizer are made."""
        return nullcontext()

    def call(self, function: Any, slices: Sequence[Slice]) -> Any:
        """Call a compiled function with the slices of a call."""
        return function(slices)

    def arrays(self, values: Any) -> list[Any]:
        """What such a call gave, a list, as arrays that can be added up."""
        return [value.numpy() for value in values]

    def read(self, part: Slice, *, training: bool) -> Slice:
        """The rows of a slice, where they are computed. Compiled."""
        return part

    def step(
        self, gradient: Gradient, update: Update, slices: Sequence[Slice], loss_scale: "LossScale | None", *,
        buckets: Buckets, together: bool = False,
    ) -> Any:  # fmt: skip
        """Compute one step on all workers and update the weights. Compiled.

        Args:
            gradient: What a worker computes.
            update: Applies gradients, summed over all workers.
            slices: Of one step, one per device of this process.
            loss_scale: For float16, otherwise None.
            buckets: In which gradients are summed.
            together: Whether layers sum over all workers, so that none of them can be computed by itself.

        Returns:
            The sum of losses over the workers of this process.
        """
        gradients, losses = self.worker_sums(gradient, slices[0], together=together)
        gradients = self.sum_gradients(gradients, buckets)
        if loss_scale is None:
            update(gradients)
        else:
            loss_scale.guard(loss_scale.overflow(gradients), lambda: update(gradients))
        return losses

    def worker_sums(self, gradient: Gradient, part: Slice, *, together: bool) -> tuple[Gradients, Any]:
        """Gradients and losses of one device's slice, summed over the workers it computes. Compiled."""
        return gradient(part)

    def sum_gradients(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        """Gradients summed over the processes. Compiled."""
        return gradients

    def means(self, values: Sequence[Any], buckets: Buckets) -> list[Any]:
        """Means over the processes of tensors, of which each has its own. Compiled."""
        return [total / self.group.size for total in self.sum_gradients(list(values), buckets)]

    def total(self, compute: Callable[[Slice], Any], slices: Sequence[Slice]) -> Any:
        """Sum over this process's devices of what `compute` makes of each one's slice. Compiled."""
        return compute(slices[0])

    def sync_sum(self, tensor: Any) -> Any:
        """Sum of a tensor over all workers, from within a worker; differentiable. Compiled."""
        return tensor

    def parts(self, variable: Any) -> list[Any]:
        """What stands for `variable` on each device of this process."""
        return [variable]

    def copies(self, variable: Any) -> list[NDArray[Any]]:
        """The values of a variable on each device of this process."""
        return [part.numpy() for part in self.parts(variable)]

    def average(self, variables: Sequence[Any]) -> None:
        """Set variables that each worker keeps for itself to their mean over all workers, everywhere."""
        if self.group.size == 1 or not variables:
            return
        means = self.group.mean([variable.numpy() for variable in variables])
        for variable, value in zip(variables, means, strict=True):
            variable.assign(value)


class VirtualReplicas(CompiledReplicas):
    """n workers on one device: how a model converges at 14 or 64 workers, studied on a laptop.

    Each worker's slice is computed by itself, with its own batch-norm statistics, and the gradients
    are summed as the workers' would be. Memory is that of one worker. Synchronised batch
    normalisation joins the slices in every layer, so then the global batch is computed as one: the
    result is that of synchronised workers, but says nothing of how workers combine.
    """

    def worker_sums(self, gradient: Gradient, part: Slice, *, together: bool) -> tuple[Gradients, Any]:
        """Gradients and losses summed over the n slices of the global batch."""
        if together or self.workers == 1:
            return gradient(part)
        # Not above: a check imports this file before it times the import of TensorFlow.
        from scalestudy.engines.tensorflow.parts import in_parts

        return in_parts(gradient, self.workers)(part)


def tensors(joined: Joined) -> tuple[TensorGroup, CompiledReplicas]:
    """What one of TensorFlow's strategies has joined."""
    assert isinstance(joined.replicas, CompiledReplicas)
    return joined.replicas.group, joined.replicas


def join_single(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """The strategy "single": one worker in one process, the reference that all others are held against."""
    group = TensorGroup()
    return Joined(group, CompiledReplicas(group, 1, slices=[(0, 1)]))


def join_virtual(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """The strategy "virtual": all workers in one process."""
    group = TensorGroup()
    return Joined(group, VirtualReplicas(group, workers, slices=[(0, workers)]))


def share_values(group: Group, variables: Sequence[Any]) -> None:
    """Give every process the values that TensorFlow's variables have on rank 0. Every rank must ask."""
    if group.size == 1 or not variables:
        return
    values = group.share_object([variable.numpy() for variable in variables])
    if group.rank:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


def without_exchange(joined: Joined) -> Joined:
    """The same workers, who sum no gradients; see `Engine.without_exchange`."""
    group, exchanging = tensors(joined)
    replicas = copy.copy(exchanging)
    replicas.sum_gradients = lambda gradients, buckets: gradients  # type: ignore[method-assign]
    replicas.means = lambda values, buckets: list(values)  # type: ignore[method-assign]
    replicas.sync_sum = lambda tensor: tensor * replicas.workers  # type: ignore[method-assign]
    return Joined(group, replicas)
