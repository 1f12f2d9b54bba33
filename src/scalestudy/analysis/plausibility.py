"""What speaks against a table before a decision is taken from it.

A table may be computed correctly and still mean something else: rows on unlike devices, runs of which each
worker did the whole work, a slow node among the repeats, a seed that fails whatever the number of workers.
Each such doubt names the rows that raise it and what would remove it, and makes the decision provisional.
Rows of one variant on unlike devices cannot be compared at all.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from scalestudy.analysis.decision import Decision
from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.measures import (
    Measures,
    gpu_names,
    is_virtual,
    why_oversubscribed,
)
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.runs import Key, Run, Seed, metric_label, seed_of
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
    kinds: dict[DoubtKind, None] = {}
    sentences = []
    for doubt in doubts:
        kinds[doubt.kind] = None
        sentences.append(doubt.sentence)
    provisional = (*decision.provisional, *kinds)
    decision = replace(decision, provisional=provisional, doubts=tuple(sentences))
    if "unlike-devices" in kinds:
        # Not even provisionally: the ratio of such times is one of devices.
        return replace(
            decision,
            kind="unlike-devices",
            choice=None,
            passed_over=(),
            rivals=(),
        )
    return decision


def _doubts(
    decision: Decision,
    rows: Sequence[Row],
    measures: Measures,
    useful: Mapping[Key, Useful],
) -> Iterator[TableDoubt]:
    timed = []
    for row in rows:
        if not row.oversubscribed and not is_virtual(measures.groups[row.key]):
            timed.append(row)
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
            kinds = by_variant.setdefault(row.key.variant, {})
            kinds.setdefault(devices, []).append(row.key)
    for kinds in by_variant.values():
        if len(kinds) < 2:
            continue
        keys: list[Key] = []
        parts = []
        for names, members in kinds.items():
            keys += members
            parts.append(f"{', '.join(sorted(names))}: {_labels(members)}")
        yield TableDoubt(
            "unlike-devices",
            tuple(keys),
            f"Rows ran on unlike GPUs, so their times are not comparable ({'; '.join(parts)}). Run all rows on one"
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
    # A column "gpu" kept rows apart, and yet one on a P100 was the reference of rows on A100s.
    for name, device in choice.swept.items():
        other = reference.swept.get(name)
        if not DEVICE_NAMES.fullmatch(name) or other in (None, device):
            continue
        counts = []
        for row in rows:
            if row.key.swept.get(name) == device:
                counts.append(row.workers)
        # The device has a row of its own that could be the reference.
        if min(counts, default=math.inf) <= reference.workers:
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
            # Our own runs record what they processed, and unlike work is compared as such.
            series.setdefault(row.key.series, []).append(row)
    for members in series.values():
        first, *others = sorted(members, key=lambda row: row.workers)
        least = FLAT * (first.training_seconds.value or math.inf)
        seconds = [row.training_seconds.value or 0.0 for row in others]
        if others and min(seconds) >= least:
            keys = [row.key for row in members]
            yield TableDoubt(
                "times-do-not-fall",
                tuple(keys),
                f"The times of {first.key.series_label} do not fall with the workers. If each worker did the"
                " whole work (weak scaling), they are no times of the same training: give the samples that"
                " were processed (--column samples_processed=NAME), or the throughput.",
            )


def _failing_everywhere(measures: Measures) -> Iterator[TableDoubt]:
    if not measures.fails_everywhere:
        return
    shares = []
    for key, count in measures.fails_everywhere.items():
        runs = count + len(measures.trained[key])
        shares.append(f"{count} of {runs} of {key.label}")
    yield TableDoubt(
        "fails-everywhere",
        tuple(measures.fails_everywhere),
        f"Some runs of every row learn nothing ({', '.join(shares)}), so this is no matter of workers. They are left"
        " out of the qualities; find out why these seeds fail before a long training.",
    )


def _gap(decision: Decision, rows: Sequence[Row]) -> Iterator[TableDoubt]:
    """A choice below a number of workers that is too large, with two doublings or more between them."""
    choice = decision.choice
    if choice is None or decision.kind == "only-smallest":
        return
    counts = []
    for row in rows:
        if row.key.variant == choice.variant and row.workers > choice.workers:
            counts.append(row.workers)
    larger = min(counts, default=None)
    if larger is None or larger <= SKIPPED * choice.workers:
        return
    too_costly = False
    for passed_over in decision.passed_over:
        costs = passed_over.why in ("cost", "uncertain")
        if costs and passed_over.key.workers == larger:
            too_costly = True
    if not too_costly:
        return
    least = 2 * choice.workers
    most = larger // 2
    beyond = [row.key for row in rows if row.workers == larger]
    yield TableDoubt(
        "gap",
        (choice, *beyond),
        f"Nothing was measured between {choice.workers} and {larger} workers: try {least} to {most}.",
    )


def _super_linear(rows: Sequence[Row]) -> Iterator[TableDoubt]:
    for row in rows:
        efficiency = row.efficiency
        if row.is_baseline or efficiency.value is None:
            continue
        lowest, most = efficiency.low, SUPER_LINEAR
        if lowest is None:
            # Without an interval, the scatter of a single run is allowed for.
            lowest = efficiency.value
            most = 1 + 2 * (SUPER_LINEAR - 1)
        if lowest > most:
            yield TableDoubt(
                "super-linear",
                (row.key,),
                f"{row.key.label} is {row.speed.steady.value:.3g} times as fast, more than its workers"
                " explain: something slows the reference down, such as its memory, its input or its cache."
                " See `scalestudy diagnose`.",
            )
            return


def _two_groups_of_times(row: Row, measures: Measures) -> Iterator[TableDoubt]:
    seconds: dict[Seed, float] = {}
    for seed, rate in measures.rate.values.get(row.key, {}).items():
        if rate > 0:
            seconds[seed] = math.log(1 / rate)
    groups = _two_groups(list(seconds.values()))
    if groups is None or why_oversubscribed(measures.groups[row.key]):
        return
    fast, slow = groups
    if min(slow) - max(fast) < math.log(APART):
        return
    # Of geometric means, since the times are logarithms.
    distance = sum(slow) / len(slow) - sum(fast) / len(fast)
    slower = math.exp(distance) - 1
    slow_runs, fast_runs = [], []
    for run in measures.groups[row.key]:
        if seconds.get(seed_of(run), -math.inf) >= min(slow):
            slow_runs.append(run)
        else:
            fast_runs.append(run)
    hosts = _hosts(slow_runs)
    where = ""
    # A node that some fast runs used as well is not what slows the others down.
    if hosts and not hosts & _hosts(fast_runs):
        where = f" (on {', '.join(sorted(hosts))})"
    yield TableDoubt(
        "two-groups-of-times",
        (row.key,),
        f"The times of {row.key.label} form two groups: {len(slow)} of {len(slow) + len(fast)} runs{where}"
        f" are {slower:.0%} slower. Look for a slow node, or another program, and run them again.",
    )


def _two_groups_of_qualities(
    row: Row,
    measures: Measures,
    decision: Decision,
) -> Iterator[TableDoubt]:
    qualities = measures.quality.values.get(row.key, {}).values()
    values = [*filter(math.isfinite, qualities)]
    groups = _two_groups(values)
    if groups is None or measures.failed.get(row.key):
        return
    low, high = groups
    # Within the margin on both sides, the two groups learned equally well.
    margin = accepted_loss(sum(high) / len(high), row.sense, decision.criteria.margin)
    if min(high) - max(low) <= 2 * margin:
        return
    low_mean = f"{sum(low) / len(low):.{row.digits}f}"
    high_mean = f"{sum(high) / len(high):.{row.digits}f}"
    yield TableDoubt(
        "two-groups-of-qualities",
        (row.key,),
        f"The training of {row.key.label} is unstable: {len(low)} of {len(values)} seeds end at"
        f" {metric_label(row.metric)} {low_mean}, the others at {high_mean}. A mean describes neither; try a"
        " lower rate or a warm-up.",
    )


def _two_groups(values: Sequence[float]) -> tuple[list[float], list[float]] | None:
    """Split values at their widest gap, if both parts have two or more and are tight in comparison."""
    if len(values) < FEWEST_IN_GROUPS:
        return None
    ordered = sorted(values)
    widest, place = -math.inf, 0
    for index, (earlier, later) in enumerate(pairwise(ordered), start=1):
        if later - earlier > widest:
            widest, place = later - earlier, index
    low = ordered[:place]
    high = ordered[place:]
    # A single run apart from the others is an outlier, not a group.
    if min(len(low), len(high)) < FEWEST_IN_GROUPS // 2:
        return None
    within_low = low[-1] - low[0]
    within_high = high[-1] - high[0]
    within = max(within_low, within_high)
    if widest <= 0 or widest <= TIGHT * within:
        return None
    return low, high


def _unclear_samples(
    decision: Decision, useful: Mapping[Key, Useful]
) -> Iterator[TableDoubt]:
    """A choice that may need more samples for the same quality, so that it does not keep the target."""
    choice, price = decision.choice, decision.price
    if choice is None or price is None or choice not in useful:
        return
    if choice in decision.samples:
        return  # the decision allows for them already
    ratio = useful[choice].ratio
    if ratio.value is None or ratio.value < MORE_SAMPLES:
        return
    same_quality = price.efficiency.times(ratio.inverse())
    least = decision.target - decision.criteria.zone
    lowest = same_quality.low
    if lowest is None:
        lowest = same_quality.value
    if lowest is not None and lowest < least:
        yield TableDoubt(
            "samples-unclear",
            (choice,),
            f"{choice.label} may need {_with_ends(ratio)} times the samples for the same quality, which would"
            f" be a cost efficiency of {_with_ends(same_quality)}. Run more seeds.",
        )


def _with_ends(estimate: Estimate) -> str:
    text = f"{estimate.value:.2f}"
    if estimate.low is None:
        return text
    return f"{text} ({estimate.low:.2f} to {estimate.high:.2f})"


def _hosts(runs: Iterable[Run]) -> set[str]:
    hosts: set[str] = set()
    for run in runs:
        hosts.update(run.result.hosts or run.rank_hosts)
    return hosts


def _labels(keys: Sequence[Key]) -> str:
    return ", ".join([key.label for key in keys])
