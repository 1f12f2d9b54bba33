"""TensorFlow's ParameterServerStrategy: each worker computes its own steps on weights that a server holds.

The process of rank 0 also holds the server and TensorFlow's coordinator, which reads the batches and gives
each to a free worker. The worker fetches the current weights and sends its update to the server, which
applies it even if other workers have updated the weights meanwhile.
"""

import os
from collections import deque
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.data.samples import Slice
from scalestudy.engines.buckets import Buckets
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.distribute import MirroredReplicas
from scalestudy.engines.tensorflow.replicas import Gradients, TensorGroup
from scalestudy.engines.tensorflow.staging import gpu
from scalestudy.hardware.cores import granted

resolvers = tf.distribute.cluster_resolver
AHEAD = 2
"""Steps scheduled ahead for each worker."""


def join(
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str,
) -> Joined:
    """Join as worker 0, server and coordinator. All other processes must serve, with TF_CONFIG set."""
    gpu(0)  # cached now, because TensorFlow later lists the workers' GPUs as well
    cores = granted()
    serve(placement, threads=len(cores))
    cluster = _cluster()
    _start(cluster, "ps", 0, threads=1)
    coordinator = resolvers.SimpleClusterResolver(
        cluster,
        task_type="chief",
        task_id=0,
        rpc_layer="grpc",
    )
    # By default TensorFlow waits forever for a process that has ended, and holds the GIL meanwhile.
    os.environ["GRPC_FAIL_FAST"] = "true"
    try:
        strategy = tf.distribute.ParameterServerStrategy(coordinator)
    finally:
        del os.environ["GRPC_FAIL_FAST"]
    group = TensorGroup()
    return Joined(group, ScheduledReplicas(strategy, group, workers))


def serve(placement: Placement, *, threads: int) -> None:
    """Let the coordinator compute in this process, in background threads of TensorFlow."""
    _start(_cluster(), "worker", placement.rank, threads=threads)


_servers: list[Any] = []
"""Keeps servers alive: TensorFlow ends one that nothing refers to."""


def _cluster() -> Any:
    """Return the addresses of all servers, from TF_CONFIG."""
    resolver = resolvers.TFConfigClusterResolver()
    return resolver.cluster_spec()


def _start(
    cluster: Any,
    job: str,
    task: int,
    *,
    threads: int,
) -> None:
    limits = tf.compat.v1.ConfigProto()
    limits.intra_op_parallelism_threads = threads
    limits.inter_op_parallelism_threads = 2
    # The servers of a process share its GPU.
    limits.gpu_options.allow_growth = True
    if job == "ps":
        # It holds variables and computes no steps.
        limits.device_count["GPU"] = 0
    server = tf.distribute.Server(cluster, job, task, protocol="grpc", config=limits)
    _servers.append(server)


class ScheduledReplicas(MirroredReplicas):
    """The workers from the coordinator's side: one replica, computed by any free worker."""

    overlaps_once = False
    copies_weights = False
    overtakes = True

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        group: TensorGroup,
        workers: int,
    ) -> None:
        super().__init__(strategy, group, 1)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._under_way: deque[Scheduled] = deque()
        self._most = AHEAD * workers

    def call(self, function: Any, slices: Sequence[Slice]) -> "Scheduled":
        """Schedule a call on a free worker; wait while `AHEAD` calls per worker are already scheduled."""
        while len(self._under_way) >= self._most:
            self._under_way.popleft().fetch()
        arguments = (list(slices),)
        value = self._coordinator.schedule(function, args=arguments)
        scheduled = Scheduled(value)
        self._under_way.append(scheduled)
        return scheduled

    def sums(self, function: Any, slices: Sequence[Slice]) -> list[Any]:
        """Schedule a call that returns a list; the result is one value that stands for all of them."""
        scheduled = self.call(function, slices)
        return [ScheduledSums([scheduled])]

    def arrays(self, sums: Sequence[Any]) -> list[NDArray[Any]]:
        (scheduled,) = sums
        first, *others = scheduled.parts
        totals = list(first.fetch())
        for part in others:
            values = part.fetch()
            for index, value in enumerate(values):
                totals[index] = totals[index] + value
        return totals

    def sum_gradients(self, gradients: Gradients, buckets: Buckets) -> Gradients:
        """Return the worker's own gradients, which it applies by itself."""
        return gradients

    def parts(self, variable: Any) -> list[Any]:
        """Return the variable, of which the server holds the only copy."""
        return [variable]

    def average(self, variables: Sequence[Any]) -> None:
        """Do nothing: variables are shared."""


class Scheduled:
    """A result that a worker computes. Errors of the worker are raised where it is fetched."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def fetch(self) -> Any:
        """Wait for the result and return it: a number, or a list of arrays."""
        return self._value.fetch()

    def __float__(self) -> float:
        return float(self.fetch())


class ScheduledSums:
    """Results to add up once all are computed, so that all workers compute meanwhile."""

    def __init__(self, parts: list[Scheduled]) -> None:
        self.parts = parts

    def __add__(self, other: "ScheduledSums") -> "ScheduledSums":
        return ScheduledSums([*self.parts, *other.parts])
