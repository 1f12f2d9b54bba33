"""Facts on how the training scales: for the sentences of a statement."""

from collections.abc import Callable, Sequence

from scalestudy.analysis.scaling.words import fit_words, model_sentences
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row
from scalestudy.features.proposal.hours import FIXED, epochs_of
from scalestudy.features.proposal.remedy import Remedy
from scalestudy.features.proposal.subject import Subject
from scalestudy.features.proposal.words import Fact, Missing, counted, measured
from scalestudy.report.format import decimals, number
from scalestudy.util import units


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
    return _against_one(subject, subject.row.speed.steady, subject.row.speed.reason)


def efficiency(subject: Subject) -> Fact:
    """E(n) = S(n)/n from steady throughput."""
    return _against_one(subject, subject.row.efficiency, subject.row.speed.reason)


def speedup_training(subject: Subject) -> Fact:
    """S(n) from total training time, against one worker."""
    return _against_one(subject, subject.row.speed.training, subject.row.speed.training_reason)


def _against_one(subject: Subject, found: Estimate, reason: str | None) -> Fact:
    if subject.row.workers == 1:
        return Missing("what is asked for is one worker", _MORE)
    if subject.row.speed.against != 1:
        return Missing("no run on one worker to compare with", Remedy(workers=(1,)))
    return measured(found) or Missing(reason or "no speed-up could be computed", Remedy(workers=(1,)))


_MORE = Remedy("Ask for more: `--workers N`.")


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


def limits(subject: Subject) -> Fact:
    """What the scaling model says of going further, in sentences."""
    keys = {row.key for row in subject.rows}
    model = next((model for model in subject.findings.models if model.series.key in keys), None)
    if model and model.fit:
        return " ".join((fit_words(model, model.series.key.strategy), *model_sentences(model)))
    more = (1, 2, 2 * max(2, subject.rows[-1].workers))
    return Missing((model.reason if model else "") or "no scaling model can be fitted", Remedy(workers=more))


def target(subject: Subject) -> Fact:
    """Efficiency below which workers count as not worth their cost."""
    return f"{subject.findings.target:g}"


def decision(subject: Subject) -> Fact:
    """The decision that the report begins with."""
    return subject.findings.advice.headline


def strong_efficiency(subject: Subject) -> Fact:
    """E(n) from training times where every training processes as many samples: strong scaling."""
    work = {row.samples_processed for row in subject.rows}
    told = measured(subject.row.efficiency_training)
    if len(work) == 1 and None not in work and told and not subject.row.is_baseline:
        return told + _relative_to(subject.row.speed.against)
    why = subject.row.speed.training_reason or "no two numbers of workers did the same work"
    return Missing(why, Remedy(workers=(1, 2, 4)))


def _relative_to(workers: int) -> str:
    return f" relative to {workers} workers" if workers > 1 else ""


def per_worker_efficiency(subject: Subject) -> Fact:
    """E(n) from throughputs where every worker has the same batch, so that an update grows with them."""
    return _keeping(subject, _per_worker, "per-worker")


def global_batch_efficiency(subject: Subject) -> Fact:
    """E(n) from throughputs where all workers together have the same batch, so that updates are the same."""
    return _keeping(subject, lambda _, row: row.global_batch, "global")


def _keeping(subject: Subject, kept: Callable[[Subject, Row], int | None], batch: str) -> Fact:
    """Efficiency from throughputs in a series that keeps the batch, against its fewest workers."""
    rate = subject.findings.measures.rate
    for series in _series(subject):
        row = next((row for row in series if row.workers == subject.row.workers), None)
        batches = {kept(subject, each) for each in series}
        if row is None or row is series[0] or len(batches) > 1 or None in batches:
            continue
        if rate.values[row.key] and rate.values[series[0].key]:
            found = rate.ratio(row.key, series[0].key).scaled(series[0].workers / row.workers)
            if told := measured(found):
                return told + _relative_to(series[0].workers)
    counts = [each.workers for each in subject.rows] if len(subject.rows) > 1 else [1, 2, 4]
    keys = (
        ("train.batch", batch), ("sweep.strategy", [subject.row.strategy]), ("sweep.workers", counts),
    )  # fmt: skip
    why = f"no series of two numbers of workers keeps its {batch} batch"
    return Missing(why, Remedy(keys=keys))


def _series(subject: Subject) -> list[Sequence[Row]]:
    """The subject's own series first, then others of its strategy, each by workers."""
    found: dict[str, list[Row]] = {subject.row.key.variant: list(subject.rows)}
    for row in subject.findings.rows:
        other = row.strategy == subject.row.strategy and row.key.variant != subject.row.key.variant
        if other and not row.oversubscribed:
            found.setdefault(row.key.variant, []).append(row)
    return [sorted(rows, key=lambda row: row.workers) for rows in found.values()]


def _per_worker(subject: Subject, row: Row) -> int | None:
    return subject.runs(row)[0].result.per_worker_batch


def epoch_time(subject: Subject) -> Fact:
    """Time of the training loop of one epoch on the workers that are asked for."""
    found, count = subject.row.training_seconds.value, epochs_of(subject, subject.row)
    if found is None or not count:
        return Missing("no epoch was timed", Remedy(seeds=3))
    seconds = found / count
    return f"{number(seconds, decimals([seconds]))} s"


FACTS = (
    throughput, training_time, epoch_time, start_up, smallest, largest, speedup, efficiency,
    speedup_training, speedup_smallest, efficiency_smallest, curve, limits, target, decision,
    per_worker_efficiency, strong_efficiency, global_batch_efficiency,
)  # fmt: skip
