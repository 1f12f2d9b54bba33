"""What an ablation is asked to measure, and the times that it measured."""

from statistics import fmean
from typing import Annotated, Literal

from pydantic import Field

from scalestudy.store.records import Count, Record, Seconds

ABLATION = "ablation.json"
BlockName = Literal[
    "whole",
    "without input",
    "without exchange",
    "alone",
    "full",
    "reference",
    "together",
]
"""Blocks of steps, in this order: the unchanged point; with one staged batch, reused; with that and without
exchange of gradients; one worker's slice alone; the one-worker run's whole batch alone; that batch with its
input; every worker's slice at once, in processes that do not communicate."""
JOINED: tuple[BlockName, ...] = ("whole", "without input", "without exchange")
"""Blocks of the point's own processes."""
ALONE: tuple[BlockName, ...] = ("alone", "full", "reference")
"""Blocks that the first worker's process measures alone, before the block "together"."""
OF_ONE: tuple[BlockName, ...] = ("full", "reference")
"""Blocks of the one-worker run, for any number of workers of the point."""
WITH_INPUT: tuple[BlockName, ...] = ("whole", "reference")


class Ablation(Record):
    """`ablation.json` next to a run's `point.json`: blocks that a worker measures instead of training."""

    blocks: tuple[BlockName, ...]
    """Blocks in order; a block may occur several times."""
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Length of a block."""
    workers: Annotated[int, Field(gt=0)]
    """Number of workers of the point."""
    worker: Count | None = None
    """Worker whose slice the process computes alone; None if the process has joined the others."""
    peers: tuple[str, ...] = ()
    """Folders of all processes that compute "together", including this one."""


class BlockTimes(Record):
    """The times that a process measured for a block."""

    name: BlockName
    steps_per_call: Annotated[int, Field(gt=0)]
    samples: Annotated[int, Field(gt=0)]
    """Samples in a step: of all workers, or in the computed slice."""
    seconds: Seconds
    """From the first request for input until the device has finished the last call."""
    waits: tuple[Seconds, ...]
    """Time that each call waited for its input."""
    calls: tuple[Seconds, ...]
    """Time of each call from the arrival of its input to the next request."""

    @property
    def step_seconds(self) -> float:
        """Mean time of a step, waiting for input included."""
        return self.seconds / (len(self.calls) * self.steps_per_call)


class AblationTimes(Record):
    """`times/N.json`: the times that rank N of an ablation measured."""

    rank: Count
    """Worker that was measured; in a process with several workers, the first."""
    host: str
    cpus: tuple[int, ...]
    blocks: tuple[BlockTimes, ...]

    def all_of(self, name: str) -> list[BlockTimes]:
        """Return the blocks with this name."""
        return [block for block in self.blocks if block.name == name]

    def mean_step(self, name: BlockName) -> float:
        """Return the mean seconds of a step over the blocks with this name."""
        return fmean(block.step_seconds for block in self.all_of(name))
