"""From what the processes of a point's twins measured to the times that are taken apart."""

from collections.abc import Sequence
from statistics import fmean

from scalestudy.analysis.decomposition import StepTimes, slowest_of
from scalestudy.study.twin import BlockTimes, TwinTimes


def step_times(joined: Sequence[TwinTimes], apart: Sequence[TwinTimes], workers: int) -> StepTimes:
    """The times of one round.

    Args:
        joined: Of the point's own processes, by rank.
        apart: Of its workers as processes of their own, by worker.
        workers: Of the point.
    """
    first = apart[0]
    whole = [_block(each, "whole") for each in joined]
    together = [_block(each, "together") for each in apart]
    reference = _block(first, "reference")
    return StepTimes(
        whole=fmean(each.step_seconds for each in whole),
        without_input=fmean(_block(each, "without input").step_seconds for each in joined),
        without_exchange=slowest_of([_steps(_block(each, "without exchange")) for each in joined]),
        slowest=slowest_of([_steps(each) for each in together]),
        together=tuple(each.step_seconds for each in together),
        alone=_block(first, "alone").step_seconds,
        full=_block(first, "full").step_seconds,
        reference=reference.step_seconds,
        waits=_of_workers([each.wait_seconds for each in whole], workers),
        share=whole[0].samples / (workers * reference.samples),
    )


def _block(times: TwinTimes, name: str) -> BlockTimes:
    return times.all_of(name)[0]


def _steps(block: BlockTimes) -> list[float]:
    """Seconds of a step, one value a call; they add up to the block, whatever its device still did at the end."""
    own = [wait + call for wait, call in zip(block.waits, block.calls, strict=True)]
    factor = block.seconds / (sum(own) * block.steps_per_call)
    return [each * factor for each in own]


def _of_workers(ranks: Sequence[float], workers: int) -> tuple[float, ...]:
    """A value of each process as one of each worker: one process holds all, or each has its own."""
    return tuple(ranks) if len(ranks) == workers else tuple(ranks) * workers
