"""TensorFlow's ParameterServerStrategy: each worker computes its own steps on weights that a server holds.

The coordinator assigns rows to a step. A worker reads them, fetches the current weights, and sends its
gradients to the server, which applies them even if other workers have updated the weights meanwhile.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.data.samples import Slice, leaves, like
from scalestudy.engines.group import Buckets, Joined
from scalestudy.engines.keras.private import READ, length, offer, wait
from scalestudy.engines.tensorflow.distribute import MirroredReplicas
from scalestudy.engines.tensorflow.replicas import Gradients, TensorGroup
from scalestudy.engines.tensorflow.staging import gpu

MOST_TERMS = 64
"""Maximum number of pending terms of a sum."""
AHEAD = 2
"""Steps scheduled ahead for each worker."""
LOOK_EVERY = 1.0
"""Seconds between two checks of the workers while waiting."""


def join(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """Join as coordinator. All other processes must serve; TF_CONFIG must be set before the import."""
    gpu(0)  # cached now, because TensorFlow later lists the workers' GPUs as well
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    # By default TensorFlow waits forever for a process that has ended, and holds the GIL meanwhile.
    os.environ["GRPC_FAIL_FAST"] = "true"
    try:
        strategy = tf.distribute.ParameterServerStrategy(resolver)
    finally:
        del os.environ["GRPC_FAIL_FAST"]
    group = TensorGroup()
    return Joined(group, RemoteReplicas(strategy, group, workers))


def serve(
    placement: Placement, read: Callable[[NDArray[Any], NDArray[Any]], list[NDArray[Any]]], *, threads: int
) -> None:
    """Let the coordinator compute in this process, in background threads of TensorFlow.

    Args:
        placement: Placement of this process.
        read: Reads a worker's rows: (row numbers, epochs), both of shape [b] -> inputs, then targets.
        threads: Threads per operation.
    """
    offer(read)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    limits = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=2)
    tf.distribute.Server(
        resolver.cluster_spec(), resolver.task_type, resolver.task_id, protocol="grpc", config=limits
    )


class RemoteReplicas(MirroredReplicas):
    """The workers from the coordinator's side: one replica, computed by any free worker."""

    overlaps_once = False

    def __init__(self, strategy: tf.distribute.Strategy, group: TensorGroup, workers: int) -> None:
        super().__init__(strategy, group, 1)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._under_way: deque[Remote] = deque()
        self._most = AHEAD * workers

    def call(self, function: Any, slices: Sequence[Slice]) -> "Remote":
        """Schedule a call on a free worker; wait while `AHEAD` steps per worker are already scheduled."""
        while len(self._under_way) >= self._most:
            self._under_way.popleft().fetch()  # at once: a result is lost with the worker that holds it
        remote = Remote(partial(self._coordinator.schedule, function, args=(slices,)), self._await)
        self._under_way.append(remote)
        return remote

    def arrays(self, values: "Remote") -> list[Any]:
        return [Later(partial(values.item, index)) for index in range(values.length)]

    def read(self, part: Slice, *, training: bool) -> Slice:
        """Read the rows of a slice in the worker's process, by the function passed to `serve`."""
        assert self.remote is not None
        inputs, targets = self.remote.training if training else self.remote.evaluation
        flat, count = [*leaves(inputs), *leaves(targets)], len(leaves(inputs))
        types = [dtype for _, dtype in flat]
        arrays = tf.raw_ops.PyFunc(input=[part.inputs, part.targets], token=READ, Tout=types)
        arrays = [
            tf.ensure_shape(array, [None, *form]) for array, (form, _) in zip(arrays, flat, strict=True)
        ]
        return part._replace(inputs=like(inputs, arrays[:count]), targets=like(targets, arrays[count:]))

    def sum_gradients(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        return gradients

    def parts(self, variable: Any) -> list[Any]:
        return [variable]

    def average(self, variables: Sequence[Any]) -> None:
        """Do nothing: variables are shared."""

    def _await(self, value: Any) -> None:
        assert self.remote is not None
        while not wait(value, LOOK_EVERY):
            self.remote.watch()


class Remote:
    """A result that a worker computes: a number, or a list of arrays.

    If its worker is lost before the result was fetched, another worker computes it again. So a step may be
    applied twice, as TensorFlow also repeats a step whose worker is lost during it.
    """

    def __init__(self, schedule: Callable[[], Any], wait_for: Callable[[Any], None]) -> None:
        self._schedule, self._wait_for = schedule, wait_for
        self._value = schedule()

    @property
    def length(self) -> int:
        return length(self._value)

    def fetch(self) -> Any:
        """Wait for the result and return it. Errors of the worker are raised here."""
        while True:
            self._wait_for(self._value)
            try:
                return self._value.fetch()
            except tf.errors.UnavailableError:
                self._value = self._schedule()

    def item(self, index: int) -> Any:
        return self.fetch()[index]

    def __float__(self) -> float:
        return float(self.fetch())


class Later:
    """An array that is still being computed, or a sum of such arrays, added in order."""

    def __init__(self, get: Callable[[], Any]) -> None:
        self._sum: Any = None
        self._terms = deque([get])

    def __add__(self, other: Any) -> "Later":
        self._terms.append(lambda: other)
        while len(self._terms) > MOST_TERMS:
            self._take()
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        while self._terms:
            self._take()
        return np.asarray(self._sum, dtype)

    def _take(self) -> None:
        term = np.asarray(self._terms.popleft()())
        self._sum = term if self._sum is None else self._sum + term
