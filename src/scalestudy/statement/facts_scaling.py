"""Facts on how the training scales: for the sentences of a statement."""

from collections.abc import Callable, Sequence

from scalestudy import units
from scalestudy.analysis.amdahl import AmdahlFit
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row
from scalestudy.report.format import decimals, number
from scalestudy.statement.remedy import Remedy
from scalestudy.statement.subject import Subject
from scalestudy.statement.words import Fact, Missing, counted, figure, measured

FIXED = ("start-up", "compile", "saving", "other")
"""Phases of a run that do not grow with its epochs."""


def throughput(subject: Subject) -> Fact:
    """Samples per second on the workers that are asked for."""
    found = subject.row.throughput
    told = measured(found, decimals([found.value or 0.0]))
    return told or Missing(
        "no epoch was steady", Remedy("Train for more than one epoch: `epochs` under [train].")
    )


def training_time(subject: Subject) -> Fact:
    """Time of the training loop alone, without start-up, compilation and evaluation."""
    seconds = subject.row.training_seconds.value
    return (
        Missing("a training time is not a number", Remedy(seeds=3))
        if seconds is None
        else units.duration(seconds)
    )


def start_up(subject: Subject) -> Fact:
    """Time of a run that is left out of the speed-ups: start-up, compilation and saving."""
    phases = subject.findings.phases.get(subject.row.key, {})
    fixed = [phases[name] for name in FIXED if name in phases]
    if not fixed:
        return Missing(
            "where the time of a run went is not recorded", Remedy("Run the study with Scalestudy itself.")
        )
    return units.duration(sum(fixed))


def smallest(subject: Subject) -> Fact:
    """The fewest workers measured, which others are held against: `1 worker`."""
    return counted(subject.smallest.workers, "worker")


def largest(subject: Subject) -> Fact:
    """The most workers measured: `14 workers`."""
    return counted(subject.rows[-1].workers, "worker")


def speedup(subject: Subject) -> Fact:
    """S(n) from steady throughput, against one worker."""
    speed = subject.row.speed
    return measured(speed.steady) or Missing(
        speed.reason or "no speed-up could be computed", Remedy(workers=(1,))
    )


def efficiency(subject: Subject) -> Fact:
    """E(n) = S(n)/n from steady throughput."""
    told = measured(subject.row.efficiency)
    return told or Missing(subject.row.speed.reason or "no speed-up could be computed", Remedy(workers=(1,)))


def speedup_smallest(subject: Subject) -> Fact:
    """How many times faster it trains than on the smallest size measured."""
    return _against_smallest(subject, lambda found: found)


def efficiency_smallest(subject: Subject) -> Fact:
    """The same, divided by how many times more workers that takes."""
    return _against_smallest(
        subject, lambda found: found.scaled(subject.smallest.workers / subject.row.workers)
    )


def _against_smallest(subject: Subject, wanted: Callable[[Estimate], Estimate]) -> Fact:
    if len(subject.rows) < 2:
        return Missing("only one number of workers was measured", Remedy(workers=(1, 2, 4)))
    if subject.row is subject.smallest:
        return Missing(
            "what is asked for is the smallest size itself", Remedy("Ask for more: `--workers N`.")
        )
    told = measured(wanted(subject.faster(subject.row, subject.smallest)))
    return told or Missing("the two cannot be compared", Remedy(seeds=3))


def curve(subject: Subject) -> Fact:
    """Every number of workers measured, where these are three or more: a curve, and not only two ends."""
    if len(subject.rows) < 3:
        more = 2 * max(2, subject.rows[-1].workers)
        return Missing(f"{len(subject.rows)} numbers of workers are no curve", Remedy(workers=(1, 2, more)))
    return ", ".join(str(row.workers) for row in subject.rows)


def serial(subject: Subject) -> Fact:
    """Serial share of the one-worker time by Amdahl's law, in per cent."""
    fit = _fit(subject)
    return fit if isinstance(fit, Missing) else f"{100 * fit.fraction:.1f} %"


def limit(subject: Subject) -> Fact:
    """Speed-up that no number of workers exceeds, by that law."""
    fit = _fit(subject)
    if isinstance(fit, Missing):
        return fit
    if fit.limit is None:
        return Missing(
            "Amdahl's law finds no serial part in what was measured", Remedy(workers=_more(subject))
        )
    return figure(fit.limit, 3)


def _fit(subject: Subject) -> AmdahlFit | Missing:
    found = next((fit for key, fit in subject.findings.fits.items() if _of(key, subject)), None)
    return found or Missing("a fit takes three numbers of workers", Remedy(workers=_more(subject)))


def _of(key: object, subject: Subject) -> bool:
    return any(key == row.key for row in subject.rows)


def _more(subject: Subject) -> tuple[int, ...]:
    """Numbers of workers that make three, and one beyond the largest."""
    return (1, 2, 2 * max(2, subject.rows[-1].workers))


def target(subject: Subject) -> Fact:
    """Efficiency below which workers count as not worth their cost."""
    return f"{subject.findings.target:g}"


def decision(subject: Subject) -> Fact:
    """The decision that the report begins with."""
    return subject.findings.advice.headline


def weak_efficiency(subject: Subject) -> Fact:
    """E(n) where every worker has the same batch at all counts: weak scaling of an update."""
    return _scaling(subject, lambda row: _per_worker(subject, row), "weak", "per-worker")


def strong_efficiency(subject: Subject) -> Fact:
    """E(n) where all workers together have the same batch at all counts: strong scaling of an update."""
    return _scaling(subject, lambda row: row.global_batch, "strong", "global")


def _scaling(subject: Subject, kept: Callable[[Row], int], kind: str, batch: str) -> Fact:
    """Efficiency from throughputs in a series that keeps the batch, against its fewest workers."""
    for series in _series(subject):
        counts = {row.workers for row in series}
        row = next((row for row in series if row.workers == subject.row.workers), None)
        if row is None or len(counts) < 2 or len({kept(each) for each in series}) > 1:
            continue
        values = subject.findings.measures.throughput.values
        if row is series[0] or not values[row.key] or not values[series[0].key]:
            continue
        found = subject.findings.measures.throughput.ratio(row.key, series[0].key)
        told = measured(found.scaled(series[0].workers / row.workers))
        if told:
            return told
    counts_wanted = [each.workers for each in subject.rows] if len(subject.rows) > 1 else [1, 2, 4]
    keys = (
        ("train.batch", batch), ("sweep.strategy", [subject.row.strategy]), ("sweep.workers", counts_wanted),
    )  # fmt: skip
    return Missing(
        f"no series of two numbers of workers keeps its {batch} batch ({kind} scaling)", Remedy(keys=keys)
    )


def _series(subject: Subject) -> list[Sequence[Row]]:
    """The subject's own series first, then others of its strategy, each by workers."""
    found: dict[str, list[Row]] = {subject.row.key.variant: list(subject.rows)}
    for row in subject.findings.rows:
        if row.strategy == subject.row.strategy and row.key.variant != subject.row.key.variant:
            found.setdefault(row.key.variant, []).append(row)
    return [sorted(rows, key=lambda row: row.workers) for rows in found.values()]


def _per_worker(subject: Subject, row: Row) -> int:
    return subject.runs(row)[0].result.per_worker_batch


def epoch_time(subject: Subject) -> Fact:
    """Time of the training loop of one epoch on the workers that are asked for."""
    found, count = subject.row.training_seconds.value, subject.runs(subject.row)[0].result.epochs
    if found is None or not count:
        return Missing("no epoch was timed", Remedy(seeds=3))
    seconds = found / count
    return f"{number(seconds, decimals([seconds]))} s"


FACTS = (
    throughput, training_time, epoch_time, start_up, smallest, largest, speedup, efficiency, speedup_smallest,
    efficiency_smallest, curve, serial, limit, target, decision, weak_efficiency, strong_efficiency,
)  # fmt: skip
