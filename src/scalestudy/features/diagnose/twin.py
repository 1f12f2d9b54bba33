"""Ablations of a point: short runs of it with something left out, by which a diagnosis tells what costs what.

`ablation.json` beside a run's `point.json` makes a worker measure blocks of steps instead of training.
"""

from typing import Annotated, Literal

from pydantic import Field

from scalestudy.study.records import Count, Record, Seconds

BlockName = Literal["whole", "without input", "without exchange", "alone", "full", "reference", "together"]
"""What a block of steps is: the point as it is; with one staged batch handed out again; that, and no worker
hearing of the others; one worker's slice alone; the one-worker run's whole batch, alone; that with its input;
and every worker's slice computed at once, by processes that know nothing of each other."""


class Ablation(Record):
    """`ablation.json`: what a process of a diagnosis measures."""

    blocks: tuple[BlockName, ...]
    """In their order; a block may come again."""
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Length of a block."""
    workers: Annotated[int, Field(gt=0)]
    """Workers of the point."""
    worker: Count | None = None
    """The worker whose slice a process computes by itself; None where it has joined the others."""
    beside: tuple[str, ...] = ()
    """Folders of the processes that compute "together" with this one, its own among them."""
    trace: bool = False
    """Whether to keep when each step began, and to have the engine's profiler write."""


class BlockTimes(Record):
    """What one process measured of a block."""

    name: BlockName
    steps_per_call: Annotated[int, Field(gt=0)]
    samples: Annotated[int, Field(gt=0)]
    """Of a step: of all workers, or of the slice that was computed."""
    seconds: Seconds
    """From the first call's asking for input until the device is done with the last."""
    waits: tuple[Seconds, ...]
    """Of each call: waiting for its input."""
    calls: tuple[Seconds, ...]
    """Of each call: from its input until the next one's is asked for."""

    @property
    def step_seconds(self) -> float:
        """Mean time of a step, waiting for input included."""
        return self.seconds / (len(self.calls) * self.steps_per_call)

    @property
    def wait_seconds(self) -> float:
        """Part of it spent waiting for input."""
        return sum(self.waits) / (len(self.calls) * self.steps_per_call)


class Mark(Record):
    """A stretch of time of a process, for the trace. Seconds by a clock that a node's processes share."""

    name: str
    lane: Literal["phase", "step"]
    begun: float
    ended: float


class AblationTimes(Record):
    """`times/N.json`: what rank N of an ablation measured."""

    rank: Count
    """The worker whose times these are; of a process with several workers, the first."""
    host: str
    cpus: tuple[int, ...]
    parameters: Count
    blocks: tuple[BlockTimes, ...]
    marks: tuple[Mark, ...] = ()

    def all_of(self, name: str) -> list[BlockTimes]:
        """The blocks of this name."""
        return [block for block in self.blocks if block.name == name]
