"""Copies of the model in one process, and the strategies of one device: "single" and "virtual"."""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.data.samples import Slice, leaves
from scalestudy.engines.buckets import Buckets
from scalestudy.engines.group import Group, Joined, Replicas

if TYPE_CHECKING:
    from scalestudy.engines.tensorflow.optimizers import LossScale

Gradients = list[Any]
Gradient = Callable[[Slice], tuple[Gradients, Any]]
"""slice -> gradients of (sum of its losses / total), and the sum of its losses."""
Update = Callable[[Gradients], None]


def in_parts(gradient: Gradient, parts: int, variables: Sequence[Any] = ()) -> Gradient:
    """Return a function that computes a slice in parts and adds up their gradients. Compiled.

    The sizes of parts differ by at most one row. Memory is needed for one part only. Layers see each part as
    a separate slice, with its own batch statistics.

    Args:
        gradient: Computes the gradients of one part.
        parts: Number of parts, at least 2. An empty part computes one row with weight 0.
        variables: Variables of the gradients. If given, the last part is computed outside the loop over the
            others, so that the exchange of a gradient can start before all gradients are complete.
    """
    import tensorflow as tf  # here, because the strategies of one device work without it

    def part_of(whole: Slice, index: Any) -> Slice:
        rows = leaves(whole.inputs)[0].shape[0]
        start = index * whole.count // parts
        stop = (index + 1) * whole.count // parts
        count = stop - start
        # An empty part computes one row, which its weight of 0 leaves out: no graph branches on the size.
        length = tf.maximum(count, 1)
        begin = tf.minimum(start, tf.maximum(whole.count, 1) - 1)
        alike = None
        if rows is not None and rows % parts == 0:
            alike = rows // parts

        def rows_of(array: Any) -> Any:
            taken = array[begin : begin + length]
            taken.set_shape([alike, *array.shape[1:]])  # GPUs and XLA need static sizes
            return taken

        return whole.mapped(
            rows_of,
            start=whole.start + start,
            count=count,
            first=tf.logical_and(whole.first, tf.equal(index, 0)),
        )

    def added(
        sums: tuple[Gradients, Any], more: tuple[Gradients, Any]
    ) -> tuple[Gradients, Any]:
        gradients = [a + b for a, b in zip(sums[0], more[0], strict=True)]
        return gradients, sums[1] + more[1]

    def total(whole: Slice) -> tuple[Gradients, Any]:
        def body(index: Any, *sums: Any) -> tuple[Any, Gradients, Any]:
            return index + 1, *added(sums, gradient(part_of(whole, index)))

        first = tf.constant(0, tf.int64)
        last = tf.constant(parts - 1, tf.int64)
        if variables:
            sums = (
                [tf.zeros(value.shape, value.dtype) for value in variables],
                tf.zeros([], tf.float64),
            )
            begun = first
            end = last
        else:
            # Without the variables, the shapes of the sums are those of the first part.
            sums = gradient(part_of(whole, first))
            begun = first + 1
            end = last + 1
        # One part after another: two at once would need the memory of two.
        _, *sums = tf.while_loop(
            lambda index, *_: index < end,
            body,
            (begun, *sums),
            parallel_iterations=1,
        )
        if not variables:
            return tuple(sums)
        # Outside the loop, each gradient is ready as soon as it is computed, and not with the last one.
        return added(sums, gradient(part_of(whole, last)))

    return total


class TensorGroup(Group):
    """Processes that also exchange tensors. The default is a single process."""

    def tensor_sum(self, tensor: Any) -> Any:
        """Sum a tensor over processes, on its device; the same on every rank."""
        return tensor


class CompiledReplicas(Replicas):
    """Replicas whose step is compiled; see `Replicas`. The default is one worker on one device.

    Methods marked "Compiled" are called while TensorFlow traces.
    """

    group: TensorGroup
    compressed = False
    """Whether gradients are summed in float16."""
    overlaps_once = False
    """Whether on GPUs only the first bucket's sum overlaps with back-propagation, because TensorFlow's
    collectives wait for all work started before them."""
    overtakes = False
    """Whether a worker's update can overtake that of an earlier step."""
    copies_weights = True
    """Whether each device has its own copy of the weights, updated only by its worker."""
    exchanges = True
    """Whether workers sum gradients and statistics; see `without_exchange`."""

    @property
    def in_halves(self) -> bool:
        """Whether two buckets are best, since only the first one's sum overlaps with back-propagation."""
        return self.overlaps_once and self.group.communication == "nccl"

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context in which the model and the optimizer are created."""
        return nullcontext()

    def call(self, function: Any, slices: Sequence[Slice]) -> Any:
        """Call a compiled function with the slices of a call."""
        return function(slices)

    def sums(self, function: Any, slices: Sequence[Slice]) -> list[Any]:
        """Call a compiled function that returns a list, and return values to add up; see `arrays`."""
        return list(function(slices))

    def arrays(self, sums: Sequence[Any]) -> list[NDArray[Any]]:
        """Return added values of `sums` (float64) as arrays. On a GPU this is the only wait for them."""
        import tensorflow as tf  # here, because the strategies of one device work without it

        flat = tf.concat([tf.reshape(part, [-1]) for part in sums], 0).numpy()
        ends = np.cumsum([part.shape.num_elements() for part in sums])
        arrays = []
        for piece, part in zip(np.split(flat, ends[:-1]), sums, strict=True):
            arrays.append(piece.reshape(tuple(part.shape)))
        return arrays

    def step(
        self,
        gradient: Gradient,
        update: Update,
        slices: Sequence[Slice],
        loss_scale: "LossScale | None",
        *,
        buckets: Buckets,
        together: bool = False,
    ) -> Any:
        """Compute one step on all workers and update the weights. Compiled.

        Args:
            gradient: Computes the gradients and losses of a slice.
            update: Applies gradients, summed over all workers.
            slices: Slices of one step, one per device of this process.
            loss_scale: For float16, otherwise None.
            buckets: Buckets in which gradients are summed.
            together: Whether layers sum over all workers, so that workers cannot be computed in turn.

        Returns:
            The sum of losses over the workers of this process.
        """
        gradients, losses = self.worker_sums(gradient, slices[0], together=together)
        gradients = self.exchange(gradients, buckets)
        if loss_scale is None:
            update(gradients)
        else:
            # Judged after the sum, which is not finite if one part is not: all workers decide the same.
            loss_scale.guard(loss_scale.overflow(gradients), lambda: update(gradients))
        return losses

    def exchange(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        """Sum gradients over processes, unless workers are kept apart (`exchanges`). Compiled."""
        if not self.exchanges:
            return gradients
        return self.sum_gradients(gradients, buckets)

    def layer_sum(self, tensor: Any) -> Any:
        """Sum a tensor of a layer over workers; without exchange, that of equal workers. Compiled."""
        if not self.exchanges:
            return tensor * self.workers
        return self.sync_sum(tensor)

    def worker_sums(
        self,
        gradient: Gradient,
        part: Slice,
        *,
        together: bool,
    ) -> tuple[Gradients, Any]:
        """Return gradients and losses of a device's slice, summed over the workers it computes. Compiled."""
        return gradient(part)

    def sum_gradients(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        """Sum gradients over processes. Compiled."""
        return gradients

    def total(self, compute: Callable[[Slice], Any], slices: Sequence[Slice]) -> Any:
        """Sum the results of `compute` for the slices of this process's devices. Compiled."""
        return compute(slices[0])

    def sync_sum(self, tensor: Any) -> Any:
        """Sum a tensor over all workers from inside a worker's computation; differentiable. Compiled."""
        return tensor

    def parts(self, variable: Any) -> list[Any]:
        """Return the component of `variable` on each device of this process."""
        return [variable]

    def copies(self, variable: Any) -> list[NDArray[Any]]:
        """Return the values of a variable on each device of this process."""
        return [part.numpy() for part in self.parts(variable)]

    def average(self, variables: Sequence[Any]) -> None:
        """Set variables that each worker has for itself to their means over all workers."""
        if self.group.size == 1 or not variables:
            return
        means = self.group.mean([variable.numpy() for variable in variables])
        for variable, value in zip(variables, means, strict=True):
            variable.assign(value)


class VirtualReplicas(CompiledReplicas):
    """n workers on one device, to study on a laptop how a model converges with 14 or 64 workers.

    Each worker's slice is computed separately, with its own batch-norm statistics, and the gradients are
    summed as over real workers. Memory is needed for one worker only. With synchronised batch normalisation
    the global batch is computed at once: the result equals that of synchronised workers, but does not test
    their exchange.
    """

    def worker_sums(
        self,
        gradient: Gradient,
        part: Slice,
        *,
        together: bool,
    ) -> tuple[Gradients, Any]:
        if together or self.workers == 1:
            return gradient(part)
        return in_parts(gradient, self.workers)(part)


def tensors(joined: Joined) -> tuple[TensorGroup, CompiledReplicas]:
    """Return the group and replicas of a TensorFlow strategy with their types."""
    assert isinstance(joined.replicas, CompiledReplicas)
    return joined.replicas.group, joined.replicas


def join_single(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join for the strategy "single": one worker in one process, the reference for all others."""
    group = TensorGroup()
    return Joined(group, CompiledReplicas(group, 1, slices=[(0, 1)]))


def join_virtual(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join for the strategy "virtual": all workers in one process."""
    group = TensorGroup()
    return Joined(group, VirtualReplicas(group, workers, slices=[(0, workers)]))


def without_exchange(joined: Joined) -> Joined:
    """Return the same workers without summing gradients; see `Engine.without_exchange`."""
    group, exchanging = tensors(joined)
    replicas = copy.copy(exchanging)
    # A shallow copy: the replicas that exchange share devices and group with it.
    replicas.exchanges = False
    return Joined(group, replicas)
