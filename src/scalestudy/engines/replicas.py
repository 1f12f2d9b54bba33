"""The workers of one process: which of the run's workers its devices compute."""

from collections.abc import Sequence
from typing import NamedTuple

from scalestudy.engines.group import Group


class Replicas:
    """The devices of one process and the workers they compute.

    What they compute, and how they combine their gradients, is the business of their engine.

    Args:
        group: The processes of the run.
        workers: Workers of the run.
        slices: For each device of this process, the workers (first, beyond the last) it computes.
        size: Copies of the model among all processes.
    """

    def __init__(
        self, group: Group, workers: int, *, slices: Sequence[tuple[int, int]], size: int = 1
    ) -> None:
        self.group, self.workers, self.slices, self.size = group, workers, tuple(slices), size


class Joined(NamedTuple):
    """What a strategy's `join` gives: the group of processes, and the replicas of this one."""

    group: Group
    replicas: Replicas
