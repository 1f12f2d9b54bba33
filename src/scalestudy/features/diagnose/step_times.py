"""From what the processes of a point's twins measured to the times that are taken apart."""

from collections.abc import Sequence
from statistics import fmean

from scalestudy.features.diagnose.decomposition import StepTimes, slowest_of
from scalestudy.features.diagnose.twin import AblationTimes, BlockName, BlockTimes


def step_times(joined: Sequence[AblationTimes], apart: Sequence[AblationTimes], workers: int) -> StepTimes:
    """The times of one round.

    Args:
        joined: Of the point's own processes, by rank.
        apart: Of its workers as processes of their own, by worker.
        workers: Of the point.
    """
    first = apart[0]
    samples = joined[0].all_of("whole")[0].samples, first.all_of("reference")[0].samples
    waits = [fmean(block.wait_seconds for block in each.all_of("whole")) for each in joined]
    return StepTimes(
        whole=fmean(_mean(each, "whole") for each in joined),
        without_input=fmean(_mean(each, "without input") for each in joined),
        without_exchange=_slowest(joined, "without exchange"),
        slowest=_slowest(apart, "together"),
        together=tuple(_mean(each, "together") for each in apart),
        alone=_mean(first, "alone"),
        full=_mean(first, "full"),
        reference=_mean(first, "reference"),
        waits=_of_workers(waits, workers),
        share=samples[0] / (workers * samples[1]),
    )


def _mean(times: AblationTimes, name: BlockName) -> float:
    """Seconds of a step, over all turns of a block."""
    return fmean(block.step_seconds for block in times.all_of(name))


def _slowest(ranks: Sequence[AblationTimes], name: BlockName) -> float:
    """Mean over turns of the slowest rank's step."""
    turns = zip(*(each.all_of(name) for each in ranks), strict=True)
    return fmean(slowest_of([_steps(block) for block in turn]) for turn in turns)


def _steps(block: BlockTimes) -> list[float]:
    """Seconds of a step, one value a call; they add up to the block, what its device did last included."""
    own = [wait + call for wait, call in zip(block.waits, block.calls, strict=True)]
    factor = block.seconds / (sum(own) * block.steps_per_call)
    return [each * factor for each in own]


def _of_workers(ranks: Sequence[float], workers: int) -> tuple[float, ...]:
    """A value of each process as one of each worker: one process holds all, or each has its own."""
    return tuple(ranks) if len(ranks) == workers else tuple(ranks) * workers
