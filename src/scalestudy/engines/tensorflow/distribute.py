"""TensorFlow's own strategies: mirrored (one process), and multiworker."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.data.samples import Slice
from scalestudy.engines.buckets import Buckets, sum_gradients
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.optimizers import LossScale
from scalestudy.engines.tensorflow.replicas import (
    CompiledReplicas,
    Gradient,
    Gradients,
    TensorGroup,
    Update,
)
from scalestudy.util.errors import UserError

SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN
COMMUNICATION = {
    "auto": tf.distribute.experimental.CommunicationImplementation.AUTO,
    "ring": tf.distribute.experimental.CommunicationImplementation.RING,
    "nccl": tf.distribute.experimental.CommunicationImplementation.NCCL,
}
HOSTS = 2**30
"""Key of the collective group of all CPUs; the strategy numbers its own groups from 1."""


def join_mirrored(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join for MirroredStrategy: a worker on each GPU of this process, or on each of several logical CPUs.

    Raises:
        UserError: If there are fewer devices than workers.
    """
    strategy = tf.distribute.MirroredStrategy(devices_of(workers, device))
    # MirroredStrategy's own choice.
    chosen = "nccl" if device == "gpu" else "ring"
    group = TensorGroup(communication=chosen)
    return Joined(group, MirroredReplicas(strategy, group, workers))


def devices_of(workers: int, device: str) -> list[str]:
    """Return the name of a "cpu" or "gpu" device of this process for each worker.

    Raises:
        UserError: If there are fewer devices than workers.
    """
    devices = tf.config.list_logical_devices(device.upper())
    if len(devices) < workers:
        raise UserError(
            f"{workers} {device.upper()} devices for {workers} workers of one process",
            f"{len(devices)}",
            "Use fewer workers, or the strategy multiworker or horovod on several nodes.",
        )
    return [device.name for device in devices[:workers]]


def same_items(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Whether two sequences hold the same objects in the same order."""
    if len(ours) != len(theirs):
        return False
    return all(one is other for one, other in zip(ours, theirs, strict=True))


class MirroredReplicas(CompiledReplicas):
    """Replicas of MirroredStrategy, one per device; see `Replicas`."""

    overlaps_once = True

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        group: TensorGroup,
        workers: int,
    ) -> None:
        # One worker for each device.
        slices = [(worker, worker + 1) for worker in range(workers)]
        super().__init__(group, workers, slices=slices, size=workers)
        self._strategy = strategy
        self._average: tuple[Sequence[Any], Callable[[], None]] | None = None

    def scope(self) -> AbstractContextManager[Any]:
        return self._strategy.scope()

    def step(
        self,
        gradient: Gradient,
        update: Update,
        slices: Sequence[Slice],
        loss_scale: LossScale | None,
        *,
        buckets: Buckets,
        together: bool = False,
    ) -> Any:
        """Compute a step on all replicas. The optimizer must not sum gradients again; see `take_summed`."""

        def compute() -> tuple[Gradients, Any]:
            gradients, losses = gradient(slices[self._device()])
            return self.exchange(gradients, buckets), losses

        if loss_scale is None:

            def whole() -> Any:
                gradients, losses = compute()
                update(gradients)
                return losses

            return self._sum(self._strategy.run(whole))

        def judged() -> Any:
            gradients, losses = compute()
            return gradients, losses, loss_scale.overflow(gradients)

        # All replicas judge the same sum, so the judgement of one stands for all.
        gradients, losses, overflow = self._strategy.run(judged)
        loss_scale.guard(
            self._local(overflow)[0],
            lambda: self._strategy.run(update, args=(gradients,)),
        )
        return self._sum(losses)

    def sum_gradients(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        """Sum gradients by TensorFlow's all-reduce in a replica, once for each bucket.

        TensorFlow packs a bucket into one tensor. It starts a collective when the tensor is complete and the
        previous collective on this device is done.
        """
        context = tf.distribute.get_replica_context()
        return sum_gradients(
            gradients,
            buckets,
            lambda part: context.all_reduce(SUM, part),
        )

    def total(self, compute: Callable[[Slice], Any], slices: Sequence[Slice]) -> Any:
        def of_device() -> Any:
            return compute(slices[self._device()])

        return tf.nest.map_structure(self._sum, self._strategy.run(of_device))

    def sync_sum(self, tensor: Any) -> Any:
        """Sum by TensorFlow's all-reduce in a replica, which is differentiable."""
        return tf.distribute.get_replica_context().all_reduce(SUM, tensor)

    def parts(self, variable: Any) -> list[Any]:
        return self._local(variable)

    def average(self, variables: Sequence[Any]) -> None:
        """Set variables to their means over replicas; compiled for each list of variables."""
        if not variables:
            return
        # Compiled once: a training averages the same variables before each evaluation.
        if self._average is None or not same_items(self._average[0], variables):

            def assign_means() -> None:
                context = tf.distribute.get_replica_context()
                means = context.all_reduce(MEAN, [tf.identity(v) for v in variables])
                for variable, mean in zip(variables, means, strict=True):
                    variable.assign(mean)

            self._average = (
                variables,
                tf.function(lambda: self._strategy.run(assign_means)),
            )
        self._average[1]()

    def _device(self) -> int:
        replica = tf.get_static_value(
            tf.distribute.get_replica_context().replica_id_in_sync_group
        )
        return int(replica)

    def _local(self, value: Any) -> list[Any]:
        return list(self._strategy.experimental_local_results(value))

    def _sum(self, value: Any) -> Any:
        local = self._local(value)
        if len(local) == 1:
            return local[0]
        return tf.add_n(local)


def join_multiworker(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join with one worker in each process. TF_CONFIG must be set before TensorFlow is imported.

    On GPUs "auto" selects NCCL, because TensorFlow's AUTO does not.
    """
    chosen = communication
    # TensorFlow's own AUTO means rings over gRPC, also on GPUs.
    if communication == "auto" and device == "gpu":
        chosen = "nccl"
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=COMMUNICATION[chosen]
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    group = CollectiveGroup(strategy, placement, chosen)
    return Joined(group, CollectiveReplicas(group))


class CollectiveGroup(TensorGroup):
    """Processes that sum by TensorFlow's collectives, with one device per process."""

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        placement: Placement,
        communication: str,
    ) -> None:
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
                # Ranks sum the same shapes in the same order, so their numbers agree.
                ring = partial(self._ring, number=len(self._of_hosts))
                function = tf.function(ring, autograph=False)
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
                # NCCL sums only what is on a GPU.
                communication_hint="ring",
            )

    def tensor_sum(self, tensor: Any) -> Any:
        """Sum a tensor over processes by TensorFlow's collective; compiled for each shape."""
        form = tensor.dtype, tuple(tensor.shape)
        if form not in self._compiled:

            def all_reduced(value: Any) -> Any:
                return self.all_reduced([value])[0]

            function = tf.function(all_reduced, autograph=False)
            # A concrete function, because TensorFlow warns of functions retraced for many shapes.
            self._compiled[form] = function.get_concrete_function(
                tf.TensorSpec(tensor.shape, tensor.dtype)
            )
        return self._compiled[form](tensor)

    def all_reduced(self, tensors: list[Any]) -> list[Any]:
        """Sum tensors over processes in one collective. Compiled."""

        def all_reduce(*parts: Any) -> Any:
            # The identity places a tensor on the replica's device, as the all-reduce requires.
            values = [tf.identity(part) for part in parts]
            return tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM,
                values,
            )

        return list(self._strategy.run(all_reduce, args=tuple(tensors)))


class CollectiveReplicas(CompiledReplicas):
    """One device per process, with plain variables: TensorFlow's scope would only slow down their updates."""

    group: CollectiveGroup
    overlaps_once = True

    def __init__(self, group: CollectiveGroup) -> None:
        super().__init__(
            group,
            group.size,
            slices=[(group.rank, group.rank + 1)],
            size=group.size,
        )

    def sum_gradients(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        return sum_gradients(gradients, buckets, self.group.all_reduced)

    def sync_sum(self, tensor: Any) -> Any:
        """Sum by TensorFlow's all-reduce, with an explicit gradient: outside a replica, it has none."""

        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def total(value: Any) -> Any:
            (result,) = self.group.all_reduced([value])
            return result, lambda upstream: self.group.all_reduced([upstream])[0]

        return total(tensor)
