"""What runs of one worker tell: the time of a step and of what it is made, and what would be exchanged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, variance

from scalestudy.analysis.runs import Run
from scalestudy.analysis.statistics import student
from scalestudy.features.estimate.uncertain import NORMAL_95, Uncertain, about, between
from scalestudy.study.records import EpochRecord, Result

STARTING = ("start-up", "framework", "join", "build", "compile")
"""Phases before the first step."""
FIXED_UNKNOWN = (0.0, 0.3)
"""Share of a one-worker step that may not shrink with its slice, where only one size of slice was timed."""
LEAST = 1.01
"""Factor within which a step's time is known at best."""


@dataclass(frozen=True)
class OneWorker:
    """A training by one worker; seconds, bytes, samples.

    Attributes:
        batch: Samples of a full step.
        training_samples: Of an epoch.
        epochs: Of a training.
        epoch_seconds: Of a steady epoch.
        input_share: Part of it spent waiting for input.
        fixed_share: Part of what is not waiting that is the same for every step, whatever its samples.
        fixed_known: Whether several sizes of slices were timed.
        first_seconds: By how much the epochs in which the process warmed up were longer.
        evaluation_seconds: Of a training.
        starting_seconds: Before the first step.
        other_seconds: Of a training: callbacks, saving, proof.
        bucket_bytes: Gradients that are summed at once.
        bucket_work: Multiplications behind each; empty where they are not known.
        sample_bytes: Of a prepared sample; None where it is not known.
        runs: How many there were.
        per_worker_rule: Whether every worker takes `batch` samples, so that larger runs have fewer updates.
        names: Of the runs.
    """

    batch: int
    training_samples: int
    epochs: int
    epoch_seconds: Uncertain
    input_share: float
    fixed_share: Uncertain
    fixed_known: bool
    first_seconds: float
    evaluation_seconds: float
    starting_seconds: float
    other_seconds: float
    bucket_bytes: tuple[int, ...]
    bucket_work: tuple[int, ...]
    sample_bytes: float | None
    runs: int
    per_worker_rule: bool
    names: tuple[str, ...]


def one_worker(
    runs: Sequence[Run],
    *,
    per_worker_rule: bool,
    epochs: int,
    others: Iterable[Run] = (),
    word_bytes: int = 4,
) -> OneWorker | None:
    """What these runs of one point tell; None where no epoch of them was recorded.

    Args:
        runs: Of one worker, alike but for the seed.
        per_worker_rule: Whether `train.batch_size` is a worker's.
        epochs: Of the training that is foreseen.
        others: Runs of one worker that differ in the size of the batch alone.
        word_bytes: Of a parameter's gradient, where the run has not recorded its buckets.
    """
    own = _own(runs)
    if not own:
        return None
    first = own[0].result
    means = [fmean(each.train_seconds for each in run.steady) for run in own]
    seconds = exp(fmean(log(each) for each in means))
    waiting = sum(each.input_seconds for run in own for each in run.steady)
    total = sum(each.train_seconds for run in own for each in run.steady)
    fixed = _fixed_share([*own, *_own(others)], first.per_worker_batch)
    return OneWorker(
        batch=first.per_worker_batch,
        training_samples=first.training_samples,
        epochs=epochs,
        epoch_seconds=about(seconds, _factor(means, own[0].steady)),
        input_share=waiting / total if total else 0.0,
        fixed_share=between(*FIXED_UNKNOWN) if fixed is None else fixed,
        fixed_known=fixed is not None,
        first_seconds=max(0.0, fmean(_warming(run) for run in own)),
        evaluation_seconds=fmean(_evaluation(run, epochs) for run in own),
        starting_seconds=fmean(_starting(run) for run in own),
        other_seconds=fmean(_other(run) for run in own),
        bucket_bytes=tuple(first.bucket_bytes) or (first.parameters * word_bytes,),
        bucket_work=tuple(first.bucket_work),
        sample_bytes=first.sample_bytes,
        runs=len(own),
        per_worker_rule=per_worker_rule,
        names=tuple(run.result.name for run in own),
    )


@dataclass(frozen=True)
class _Own:
    """A run of ours with records of its epochs."""

    result: Result
    epochs: list[EpochRecord]

    @property
    def steady(self) -> list[EpochRecord]:
        """Epochs without warming up; where there are none, what there is."""
        return [each for each in self.epochs[1:] if not each.resumed] or self.epochs


def _own(runs: Iterable[Run]) -> list[_Own]:
    """Runs of ours that took time; numbers from elsewhere do not tell what a step is made of."""
    found = []
    for run in runs:
        epochs = [each for each in run.epochs if isinstance(each, EpochRecord) and each.train_seconds > 0]
        if isinstance(run.result, Result) and epochs:
            found.append(_Own(run.result, epochs))
    return found


def _factor(means: Sequence[float], epochs: Sequence[EpochRecord]) -> float:
    """Within which the mean epoch is known, by the spread over runs, else over epochs."""
    logs = [log(each) for each in means]
    if len(logs) < 2:
        logs = [log(each.train_seconds) for each in epochs]
    if len(logs) < 2:
        return exp(0.1)
    reach = student(len(logs) - 1) * sqrt(variance(logs) / len(logs))
    return max(LEAST, exp(min(reach, 1.0)))


def _warming(run: _Own) -> float:
    """Seconds by which a run's epochs were longer together than as many steady ones."""
    steady = fmean(each.train_seconds for each in run.steady)
    return sum(each.train_seconds - steady for each in run.epochs)


def _evaluation(run: _Own, epochs: int) -> float:
    """Seconds of evaluation in a training of so many epochs."""
    found = sum(each.evaluation_seconds for each in run.epochs) or run.result.phases.get("evaluation", 0.0)
    return found * epochs / len(run.epochs)


def _starting(run: _Own) -> float:
    return sum(run.result.phases.get(name, 0.0) for name in STARTING)


def _other(run: _Own) -> float:
    spent = ("steps", "input", "training", "evaluation", *STARTING)
    return sum(seconds for phase, seconds in run.result.phases.items() if phase not in spent)


def _fixed_share(runs: Iterable[_Own], batch: int) -> Uncertain | None:
    """Of a step of so many samples, by a straight line through the time of steps of several batches.

    None where all runs had one size.
    """
    rows: dict[int, list[float]] = {}
    for run in runs:
        steps = -(-run.result.training_samples // run.result.per_worker_batch)
        for each in run.steady:
            if each.samples and each.steps == steps:
                computing = each.train_seconds - each.input_seconds
                rows.setdefault(round(each.samples / each.steps), []).append(computing / each.steps)
    if len(rows) < 2 or max(rows) < 1.5 * min(rows):
        return None
    low, high = min(rows), max(rows)
    one, two = fmean(rows[low]), fmean(rows[high])
    slope = max(0.0, (two - one) / (high - low))
    fixed = max(0.0, one - slope * low)
    whole = fixed + slope * batch
    share = fixed / whole if whole else 0.0
    wide = max(0.01, NORMAL_95 * max(_relative(rows[each]) for each in (low, high)))
    return Uncertain(share, max(0.0, share - wide), min(1.0, share + wide), "share")


def _relative(values: Sequence[float]) -> float:
    """Standard error of a mean, as a share of it; a tenth for a single value."""
    if len(values) < 2:
        return 0.1
    return sqrt(variance(values) / len(values)) / fmean(values)
