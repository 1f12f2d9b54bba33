"""What speaks against a table before a decision is taken from it.

A table may be computed correctly and still mean something else: rows on unlike devices, runs of which each
worker did the whole work, a slow node among the repeats, a seed that fails whatever the number of workers.
Each such doubt names the rows that raise it and what would remove it, and makes the decision provisional.
Rows of one variant on unlike devices cannot be compared at all.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from scalestudy.analysis.decision import Decision
from scalestudy.analysis.measures import (
    Measures,
    gpu_names,
    is_virtual,
    why_oversubscribed,
)
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.runs import Key, Run, metric_label, seed_of
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.study_table import Row
from scalestudy.analysis.to_target import Useful

DoubtKind = Literal[
    "unlike-devices",
    "times-do-not-fall",
    "fails-everywhere",
    "gap",
    "super-linear",
    "two-groups-of-times",
    "two-groups-of-qualities",
    "samples-unclear",
]
FLAT = 0.8
"""Times of more workers that are all above this share of one worker's do not fall."""
SKIPPED = 4
"""A measured number of workers more than so many times the chosen one leaves two doublings between them."""
SUPER_LINEAR = 1.05
"""An efficiency whose interval lies above it, or twice as far above 1 without an interval, is implausible."""
APART = 1.15
"""Ratio of times between two groups of runs of a row."""
TIGHT = 4.0
"""How many times the spread within groups the distance between them is."""
FEWEST_IN_GROUPS = 4
"""Runs of a row in which two groups can be told from chance."""
DEVICE_NAMES = re.compile(
    r"(gpu|device|accelerator|cpu|machine|cluster|partition|node(?=.))[ _-]?(name|type|model|kind)?",
    re.I,
)
"""Names of columns that tell unlike devices apart."""
MORE_SAMPLES = 1.1
"""Ratio of samples until the same quality that is worth a word."""


@dataclass(frozen=True)
class TableDoubt:
    """One reason to doubt a table: its kind, the rows that raise it, and a sentence with what to do."""

    kind: DoubtKind
    keys: tuple[Key, ...]
    sentence: str


def with_doubts(
    decision: Decision,
    rows: Sequence[Row],
    measures: Measures,
    useful: Mapping[Key, Useful],
) -> Decision:
    """Return the decision with what speaks against it, which makes it provisional."""
    doubts = tuple(_doubts(decision, rows, measures, useful))
    if not doubts:
        return decision
    kinds = dict.fromkeys(doubt.kind for doubt in doubts)
    sentences = tuple(doubt.sentence for doubt in doubts)
    decision = replace(
        decision, provisional=(*decision.provisional, *kinds), doubts=sentences
    )
    if "unlike-devices" in kinds:
        return replace(
            decision, kind="unlike-devices", choice=None, passed_over=(), rivals=()
        )
    return decision


def _doubts(
    decision: Decision,
    rows: Sequence[Row],
    measures: Measures,
    useful: Mapping[Key, Useful],
) -> Iterator[TableDoubt]:
    timed = [
        row
        for row in rows
        if not row.oversubscribed and not is_virtual(measures.groups[row.key])
    ]
    yield from _unlike_devices(timed, measures)
    yield from _unlike_named_devices(timed, decision)
    yield from _flat_times(timed, measures)
    yield from _failing_everywhere(measures)
    yield from _gap(decision, timed)
    yield from _super_linear(timed)
    for row in timed:
        yield from _two_groups_of_times(row, measures)
    for row in rows:
        yield from _two_groups_of_qualities(row, measures, decision)
    yield from _unclear_samples(decision, useful)


def _unlike_devices(rows: Sequence[Row], measures: Measures) -> Iterator[TableDoubt]:
    """Rows of one variant whose GPUs have different names."""
    by_variant: dict[str, dict[frozenset[str], list[Key]]] = {}
    for row in rows:
        if devices := gpu_names(measures.groups[row.key]):
            by_variant.setdefault(row.key.variant, {}).setdefault(devices, []).append(
                row.key
            )
    for kinds in by_variant.values():
        if len(kinds) > 1:
            listed = "; ".join(
                f"{', '.join(sorted(names))}: {_labels(keys)}"
                for names, keys in kinds.items()
            )
            keys = tuple(key for members in kinds.values() for key in members)
            yield TableDoubt(
                "unlike-devices",
                keys,
                f"Rows ran on unlike GPUs, so their times are not comparable ({listed}). Run all rows on one"
                " kind: CUDA_VISIBLE_DEVICES, or gpu_request and constraint in the site profile.",
            )


def _unlike_named_devices(
    rows: Sequence[Row], decision: Decision
) -> Iterator[TableDoubt]:
    """A choice and a reference on devices that a column tells apart, if the choice's lack such a reference.

    A table from elsewhere that names the device keeps rows of unlike devices apart, as another setting.
    """
    choice, reference = decision.choice, decision.reference
    if choice is None or reference is None:
        return
    for name, device in choice.swept.items():
        other = reference.swept.get(name)
        if not DEVICE_NAMES.fullmatch(name) or other in (None, device):
            continue
        alike = [row.key for row in rows if row.key.swept.get(name) == device]
        if any(key.workers <= reference.workers for key in alike):
            continue
        yield TableDoubt(
            "unlike-devices",
            (choice, reference),
            f"Rows ran on unlike devices, so their times are not comparable: {reference.label}, and"
            f" {choice.label}. Time fewer workers with {name} = {device}, too.",
        )


def _flat_times(rows: Sequence[Row], measures: Measures) -> Iterator[TableDoubt]:
    """Imported series whose times do not fall, though nothing says that their work is equal."""
    series: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.source and row.training_seconds.value and row.samples_processed is None:
            series.setdefault(row.key.series, []).append(row)
    for members in series.values():
        first, *others = sorted(members, key=lambda row: row.workers)
        alone = first.training_seconds.value or math.inf
        if others and all(
            (row.training_seconds.value or 0.0) >= FLAT * alone for row in others
        ):
            yield TableDoubt(
                "times-do-not-fall",
                tuple(row.key for row in members),
                f"The times of {first.key.series_label} do not fall with the workers. If each worker did the"
                " whole work (weak scaling), they are no times of the same training: give the samples that"
                " were processed (--column samples_processed=NAME), or the throughput.",
            )


def _failing_everywhere(measures: Measures) -> Iterator[TableDoubt]:
    if measures.fails_everywhere:
        listed = ", ".join(
            f"{count} of {count + len(measures.trained[key])} of {key.label}"
            for key, count in measures.fails_everywhere.items()
        )
        yield TableDoubt(
            "fails-everywhere",
            tuple(measures.fails_everywhere),
            f"Some runs of every row learn nothing ({listed}), so this is no matter of workers. They are left"
            " out of the qualities; find out why these seeds fail before a long training.",
        )


def _gap(decision: Decision, rows: Sequence[Row]) -> Iterator[TableDoubt]:
    """A choice below a number of workers that is too large, with two doublings or more between them."""
    choice = decision.choice
    if choice is None or decision.kind == "only-smallest":
        return
    more = sorted({row.workers for row in rows if row.key.variant == choice.variant})
    larger = next((count for count in more if count > choice.workers), None)
    costly = {
        row.key.workers
        for row in decision.passed_over
        if row.why in ("cost", "uncertain")
    }
    if larger is None or larger <= SKIPPED * choice.workers or larger not in costly:
        return
    least, most = 2 * choice.workers, larger // 2
    yield TableDoubt(
        "gap",
        (choice, *(row.key for row in rows if row.workers == larger)),
        f"Nothing was measured between {choice.workers} and {larger} workers: try {least} to {most}.",
    )


def _super_linear(rows: Sequence[Row]) -> Iterator[TableDoubt]:
    for row in rows:
        efficiency = row.efficiency
        if row.is_baseline or efficiency.value is None:
            continue
        certain = efficiency.low is not None and efficiency.low > SUPER_LINEAR
        single = efficiency.low is None and efficiency.value > 1 + 2 * (
            SUPER_LINEAR - 1
        )
        if certain or single:
            yield TableDoubt(
                "super-linear",
                (row.key,),
                f"{row.key.label} is {row.speed.steady.value:.3g} times as fast, more than its workers"
                " explain: something slows the reference down, such as its memory, its input or its cache."
                " See `scalestudy diagnose`.",
            )
            return


def _two_groups_of_times(row: Row, measures: Measures) -> Iterator[TableDoubt]:
    values = measures.rate.values.get(row.key, {})
    seconds = {seed: math.log(1 / value) for seed, value in values.items() if value > 0}
    groups = _two_groups(list(seconds.values()))
    if why_oversubscribed(measures.groups[row.key]) or groups is None:
        return
    fast, slow = groups
    if min(slow) - max(fast) < math.log(APART):
        return
    slower = math.exp(sum(slow) / len(slow) - sum(fast) / len(fast)) - 1
    runs = [
        run
        for run in measures.groups[row.key]
        if seconds.get(seed_of(run), -math.inf) >= min(slow)
    ]
    hosts = sorted({host for run in runs for host in _hosts(run)})
    others = [run for run in measures.groups[row.key] if run not in runs]
    shared = {host for run in others for host in _hosts(run)}
    where = f" (on {', '.join(hosts)})" if hosts and not shared & set(hosts) else ""
    yield TableDoubt(
        "two-groups-of-times",
        (row.key,),
        f"The times of {row.key.label} form two groups: {len(slow)} of {len(slow) + len(fast)} runs{where}"
        f" are {slower:.0%} slower. Look for a slow node, or another program, and run them again.",
    )


def _two_groups_of_qualities(
    row: Row, measures: Measures, decision: Decision
) -> Iterator[TableDoubt]:
    values = [
        value
        for value in measures.quality.values.get(row.key, {}).values()
        if math.isfinite(value)
    ]
    groups = _two_groups(values)
    if groups is None or measures.failed.get(row.key):
        return
    low, high = groups
    margin = accepted_loss(sum(high) / len(high), row.sense, decision.criteria.margin)
    if min(high) - max(low) <= 2 * margin:
        return
    means = [f"{sum(group) / len(group):.{row.digits}f}" for group in (low, high)]
    yield TableDoubt(
        "two-groups-of-qualities",
        (row.key,),
        f"The training of {row.key.label} is unstable: {len(low)} of {len(values)} seeds end at"
        f" {metric_label(row.metric)} {means[0]}, the others at {means[1]}. A mean describes neither; try a"
        " lower rate or a warm-up.",
    )


def _two_groups(values: Sequence[float]) -> tuple[list[float], list[float]] | None:
    """Split values at their widest gap, if both parts have two or more and are tight in comparison."""
    if len(values) < FEWEST_IN_GROUPS:
        return None
    ordered = sorted(values)
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    place = gaps.index(max(gaps)) + 1
    low, high = ordered[:place], ordered[place:]
    if min(len(low), len(high)) < FEWEST_IN_GROUPS // 2:
        return None
    within = max(low[-1] - low[0], high[-1] - high[0])
    return (low, high) if max(gaps) > TIGHT * within and max(gaps) > 0 else None


def _unclear_samples(
    decision: Decision, useful: Mapping[Key, Useful]
) -> Iterator[TableDoubt]:
    """A choice that may need more samples for the same quality, so that it does not keep the target."""
    choice, price = decision.choice, decision.price
    if (
        choice is None
        or price is None
        or choice not in useful
        or choice in decision.samples
    ):
        return
    ratio = useful[choice].ratio
    if ratio.value is None or ratio.value < MORE_SAMPLES:
        return
    same_quality = price.efficiency.times(ratio.inverse())
    least = decision.target - decision.criteria.zone
    lowest = same_quality.low if same_quality.low is not None else same_quality.value
    if lowest is not None and lowest < least:
        yield TableDoubt(
            "samples-unclear",
            (choice,),
            f"{choice.label} may need {_with_ends(ratio)} times the samples for the same quality, which would"
            f" be a cost efficiency of {_with_ends(same_quality)}. Run more seeds.",
        )


def _with_ends(estimate: Estimate) -> str:
    text = f"{estimate.value:.2f}"
    return (
        text
        if estimate.low is None
        else f"{text} ({estimate.low:.2f} to {estimate.high:.2f})"
    )


def _hosts(run: Run) -> list[str]:
    return run.result.hosts or [rank.host for rank in run.ranks]


def _labels(keys: Sequence[Key]) -> str:
    return ", ".join(key.label for key in keys)
