"""Split the step times of a point's ablations into parts of the lost efficiency, which add up to 1 - E(n).

With T the time of a step, E(n) = k T(1) / T(n), where k is the ratio of the samples per worker of a step with
n workers to those with one worker. T(n) - k T(1) is a telescoping sum of differences between ablations, each
of which leaves out one thing more:

    input       T(n) - without input, less k times the same difference for one worker
    exchange    without input - without exchange (the slowest of the point's own processes)
    rest        without exchange - the slowest of as many processes that do not communicate
    imbalance   the slowest of these in each step - the first of them
    contention  the first of them - the same process alone on the node
    fixed       that process alone - k times the one-worker run's whole batch

With a batch per worker, the slice is the one worker's whole batch, and the last difference belongs to "rest".

Intervals are from Tukey's jackknife over rounds ("Bias and confidence in not quite large samples", Annals of
Mathematical Statistics 29, 1958). Each round measures all ablations in turn, so that effects common to a
round cancel. Values are computed from the mean times of all rounds, so that the parts add up exactly.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, variance
from typing import Annotated, Any, Literal

from pydantic import Field

from scalestudy.analysis.estimate import student
from scalestudy.config.point import Point
from scalestudy.features.diagnose.ablation import AblationTimes, BlockName, BlockTimes
from scalestudy.store.record_file import read_record, write_record
from scalestudy.store.records import Count, Record, Seconds
from scalestudy.util.files import make_inside

FOLDER = "diagnosis"
PartName = Literal["input", "exchange", "imbalance", "contention", "fixed", "rest"]
SLOW = 1.05
"""Ratio to the mean of the other ranks from which a rank is reported as slow."""


class IntervalRecord(Record):
    """A value with the ends of its 95 % interval; both None after a single round."""

    value: float
    low: float | None = None
    high: float | None = None


class LostPart(Record):
    """A part of the lost efficiency."""

    name: PartName
    share: IntervalRecord
    """Share of a step's time; the shares of all parts add up to 1 - E(n). Negative for a gain."""
    seconds: float
    """Seconds of a step."""


class RankSpeed(Record):
    """The time in which a worker computes its slice, compared with the other workers."""

    rank: Count
    host: str
    cpus: tuple[int, ...] = ()
    seconds: Seconds
    """Seconds of a step."""
    ratio: IntervalRecord
    """Ratio of `seconds` to the mean of the other workers."""


class DiagnosisTerms(Record):
    """Settings of the point that suggestions depend on."""

    device: Literal["cpu", "gpu"]
    cores: Count
    """Number of cores granted by this machine."""
    cpus_per_worker: Count
    batch_size: Count
    steps_per_call: Count


class Diagnosis(Record):
    """Why a point's efficiency is below 1."""

    schema_version: Literal[1] = 1
    point: str
    """Name of the point."""
    digest: str
    """Digest of the point's settings; it differs if the study has changed since."""
    strategy: str
    implementation: str
    workers: Annotated[int, Field(gt=1)]
    global_batch: Count
    swept: Mapping[str, Any] = {}
    host: str
    made: str
    """Date and time, ISO 8601, UTC."""
    rounds: Annotated[int, Field(gt=0)]
    block_seconds: Seconds
    step_seconds: Seconds
    """Time of a step of the unchanged point."""
    ideal_seconds: Seconds
    """Time of a step of the one-worker run, scaled to the samples per worker of the point."""
    efficiency: IntervalRecord
    """E(n) from the ablations: 1 less the shares of all parts."""
    input: IntervalRecord
    """Share of the point's step that its input costs in total, including what one worker loses too."""
    reference_input: IntervalRecord
    """The same share for the one-worker run. Efficiency does not show this loss."""
    parts: tuple[LostPart, ...]
    ranks: tuple[RankSpeed, ...]
    terms: DiagnosisTerms
    oversubscribed: str | None = None
    """Why these times are not meaningful: more workers than cores, or cores shared with another study."""


def digest_of(point: Point) -> str:
    """Return a digest of the settings that determine what a point computes and how fast."""
    content = {"is": point.identity(), "terms": point.terms.timing()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def diagnosis_folder(study: Path, point: str) -> Path:
    """Return the folder of a point's diagnosis in a study's folder."""
    return study / FOLDER / point


def make_diagnosis_folder(study: Path, point: str) -> Path:
    """Create that folder unless it is there, and return it; raises OSError if a part of it is a link."""
    make_inside(study / FOLDER)
    return make_inside(diagnosis_folder(study, point))


def write_diagnosis(study: Path, diagnosis: Diagnosis) -> Path:
    """Write a diagnosis in place of the point's previous one, and return its file."""
    file = make_diagnosis_folder(study, diagnosis.point) / "diagnosis.json"
    write_record(file, diagnosis)
    return file


def diagnoses(study: Path) -> list[Diagnosis]:
    """Return the readable diagnoses in a study's folder, the newest first."""
    readable = []
    for file in (study / FOLDER).glob("*/diagnosis.json"):
        record = read_record(file, Diagnosis).record
        if record:
            readable.append(record)
    return sorted(readable, key=lambda record: record.made, reverse=True)


@dataclass(frozen=True)
class RoundTimes:
    """Seconds of a step in one round, or as the mean of several rounds.

    Attributes:
        whole: The unchanged point.
        without_input: With one staged batch, reused.
        without_exchange: With one staged batch and no exchange of gradients; the slowest worker.
        slowest: The slowest worker of each step among processes that do not communicate.
        together: The same processes, one value per worker.
        alone: The first of these processes alone on the node.
        full: The whole batch of the one-worker run, without input.
        reference: The whole batch of the one-worker run, with input.
        share: k, the ratio of the samples of a worker to those of the one-worker run.
    """

    whole: float
    without_input: float
    without_exchange: float
    slowest: float
    together: tuple[float, ...]
    alone: float
    full: float
    reference: float
    share: float

    @property
    def ideal(self) -> float:
        """Seconds of a step without losses."""
        return self.share * self.reference

    @property
    def efficiency(self) -> float:
        """E(n)."""
        return self.ideal / self.whole


Statistic = Callable[[RoundTimes], float]


def round_times(
    joined: Sequence[AblationTimes],
    apart: Sequence[AblationTimes],
    workers: int,
) -> RoundTimes:
    """Return the times of a round from the point's own processes (`joined`) and separate ones (`apart`)."""
    first = apart[0]
    of_all = joined[0].all_of("whole")[0].samples
    of_one = first.all_of("reference")[0].samples
    return RoundTimes(
        # Ranks that exchange gradients wait for one another, so any of them shows the time of a step.
        whole=fmean([_mean(rank, "whole") for rank in joined]),
        without_input=fmean([_mean(rank, "without input") for rank in joined]),
        without_exchange=_slowest(joined, "without exchange"),
        slowest=_slowest(apart, "together"),
        together=tuple([_mean(rank, "together") for rank in apart]),
        alone=_mean(first, "alone"),
        full=_mean(first, "full"),
        reference=_mean(first, "reference"),
        share=of_all / (workers * of_one),
    )


def _mean(times: AblationTimes, name: BlockName) -> float:
    return fmean(block.step_seconds for block in times.all_of(name))


def _slowest(ranks: Sequence[AblationTimes], name: BlockName) -> float:
    """Return the mean over calls of the slowest rank's step. Ranks may differ in their number of calls."""
    means = []
    for blocks in zip(*[rank.all_of(name) for rank in ranks], strict=True):
        by_call = zip(*map(_steps, blocks), strict=False)
        means.append(fmean(map(max, by_call)))
    return fmean(means)


def _steps(block: BlockTimes) -> list[float]:
    """Return the seconds of a step in each call, scaled so that they add up to the time of the block."""
    calls = [wait + call for wait, call in zip(block.waits, block.calls, strict=True)]
    factor = block.seconds / (sum(calls) * block.steps_per_call)
    return [call * factor for call in calls]


def mean_times(rounds: Sequence[RoundTimes]) -> RoundTimes:
    """Return the mean of each time over rounds."""
    numbers = (
        "whole",
        "without_input",
        "without_exchange",
        "slowest",
        "alone",
        "full",
        "reference",
    )
    means = {}
    for name in numbers:
        means[name] = fmean([getattr(times, name) for times in rounds])
    by_worker = zip(*[times.together for times in rounds], strict=True)
    return replace(rounds[0], **means, together=tuple(map(fmean, by_worker)))


def parts(times: RoundTimes, *, per_worker: bool) -> dict[PartName, float]:
    """Return the seconds of a step that each part costs; their sum is `whole - ideal`.

    With a batch `per_worker`, the part "fixed" is zero.
    """
    first = times.together[0]
    input_of_one = times.share * (times.reference - times.full)
    fixed = times.alone - times.share * times.full
    rest = times.without_exchange - times.slowest
    # With a batch per worker, the slice is the one worker's whole batch: their difference is noise.
    if per_worker:
        fixed, rest = 0.0, rest + fixed
    return {
        "input": times.whole - times.without_input - input_of_one,
        "exchange": times.without_input - times.without_exchange,
        "imbalance": times.slowest - first,
        "contention": first - times.alone,
        "fixed": fixed,
        "rest": rest,
    }


def relative_speed(times: RoundTimes, worker: int) -> float:
    """Return the ratio of a worker's computing time to the mean of the others."""
    others = [*times.together[:worker], *times.together[worker + 1 :]]
    return times.together[worker] / fmean(others)


def jackknife(rounds: Sequence[RoundTimes], statistic: Statistic) -> IntervalRecord:
    """Return a statistic of the mean times with its interval over rounds; one round gives no interval."""
    value, count = statistic(mean_times(rounds)), len(rounds)
    if count < 2:
        return IntervalRecord(value=value)
    pseudo = []
    for left_out in range(count):
        kept = [*rounds[:left_out], *rounds[left_out + 1 :]]
        other = statistic(mean_times(kept))
        pseudo.append(count * value - (count - 1) * other)
    reach = student(count - 1) * math.sqrt(variance(pseudo) / count)
    return IntervalRecord(
        value=value,
        low=value - reach,
        high=value + reach,
    )


def decompose(
    point: Point,
    rounds: Sequence[RoundTimes],
    ranks: Sequence[AblationTimes],
    terms: DiagnosisTerms,
    *,
    block_seconds: float,
    oversubscribed: str | None = None,
) -> Diagnosis:
    """Split a point's step time into the parts of a diagnosis; `ranks` hold host and cores of each worker."""
    times, per_worker = mean_times(rounds), point.train.batch == "per-worker"

    def share(name: PartName) -> Statistic:
        return lambda times: parts(times, per_worker=per_worker)[name] / times.whole

    def ratio(worker: int) -> Statistic:
        return lambda times: relative_speed(times, worker)

    lost = []
    for name, seconds in parts(times, per_worker=per_worker).items():
        interval = jackknife(rounds, share(name))
        lost.append(
            LostPart(
                name=name,
                seconds=seconds,
                share=interval,
            )
        )
    speeds = []
    for index, rank in enumerate(ranks):
        speeds.append(
            RankSpeed(
                rank=index,
                host=rank.host,
                cpus=rank.cpus,
                seconds=times.together[index],
                ratio=jackknife(rounds, ratio(index)),
            )
        )
    return Diagnosis(
        point=point.name,
        digest=digest_of(point),
        strategy=point.strategy,
        implementation=point.implementation,
        workers=point.workers,
        global_batch=point.global_batch,
        swept=point.swept,
        host=ranks[0].host,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        rounds=len(rounds),
        block_seconds=block_seconds,
        step_seconds=times.whole,
        ideal_seconds=times.ideal,
        efficiency=jackknife(rounds, lambda times: times.efficiency),
        input=jackknife(
            rounds, lambda times: (times.whole - times.without_input) / times.whole
        ),
        reference_input=jackknife(
            rounds, lambda times: (times.reference - times.full) / times.reference
        ),
        parts=tuple(lost),
        ranks=tuple(speeds),
        terms=terms,
        oversubscribed=oversubscribed,
    )


def slow_rank(diagnosis: Diagnosis) -> RankSpeed | None:
    """Return the worker that is significantly slower than the others, by `SLOW` or more; None if none is."""
    slowest = max(diagnosis.ranks, key=lambda rank: rank.seconds)
    if slowest.ratio.value >= SLOW and (slowest.ratio.low or 0) > 1:
        return slowest
    return None
