"""What speaks against a table before a decision is taken from it.

A table may be computed correctly and still mean something else: rows on unlike devices, runs of which each
worker did the whole work, a slow node among the repeats, a seed that fails whatever the number of workers.
Each such doubt names the rows that raise it and what would remove it, and makes the decision provisional.
Rows of one variant on unlike devices cannot be compared at all.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from scalestudy.analysis.decision import Decision
from scalestudy.analysis.doubts import (
    Doubt,
    DoubtKind,
    FailsEverywhere,
    FlatTimes,
    GroupsOfQualities,
    GroupsOfTimes,
    SuperLinear,
    UnclearSamples,
    UnlikeGpus,
    UnlikeNamedDevices,
    UnmeasuredCounts,
)
from scalestudy.analysis.measures import (
    Measures,
    gpu_names,
    is_virtual,
    why_oversubscribed,
)
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.runs import Key, Run, Seed, seed_of
from scalestudy.analysis.study_table import Row
from scalestudy.analysis.to_target import Useful

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
    for doubt in doubts:
        kinds[doubt.kind] = None
    provisional = (*decision.provisional, *kinds)
    decision = replace(decision, provisional=provisional, doubts=doubts)
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
) -> Iterator[Doubt]:
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


def _unlike_devices(rows: Sequence[Row], measures: Measures) -> Iterator[Doubt]:
    """Rows of one variant whose GPUs have different names."""
    by_variant: dict[str, dict[frozenset[str], list[Key]]] = {}
    for row in rows:
        if devices := gpu_names(measures.groups[row.key]):
            kinds = by_variant.setdefault(row.key.variant, {})
            kinds.setdefault(devices, []).append(row.key)
    for kinds in by_variant.values():
        if len(kinds) < 2:
            continue
        members = {names: tuple(keys) for names, keys in kinds.items()}
        yield UnlikeGpus(members)


def _unlike_named_devices(rows: Sequence[Row], decision: Decision) -> Iterator[Doubt]:
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
        yield UnlikeNamedDevices(choice, reference, name, device)


def _flat_times(rows: Sequence[Row], measures: Measures) -> Iterator[Doubt]:
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
            yield FlatTimes(first.key)


def _failing_everywhere(measures: Measures) -> Iterator[Doubt]:
    if not measures.fails_everywhere:
        return
    shares = {}
    for key, count in measures.fails_everywhere.items():
        runs = count + len(measures.trained[key])
        shares[key] = (count, runs)
    yield FailsEverywhere(shares)


def _gap(decision: Decision, rows: Sequence[Row]) -> Iterator[Doubt]:
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
    yield UnmeasuredCounts(choice.workers, larger, least, most)


def _super_linear(rows: Sequence[Row]) -> Iterator[Doubt]:
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
            yield SuperLinear(row.key, row.speed.steady)
            return


def _two_groups_of_times(row: Row, measures: Measures) -> Iterator[Doubt]:
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
    slow_mean = sum(slow) / len(slow)
    fast_mean = sum(fast) / len(fast)
    distance = slow_mean - fast_mean
    slower = math.exp(distance) - 1
    slow_runs, fast_runs = [], []
    for run in measures.groups[row.key]:
        if seconds.get(seed_of(run), -math.inf) >= min(slow):
            slow_runs.append(run)
        else:
            fast_runs.append(run)
    hosts = _hosts(slow_runs)
    # A node that some fast runs used as well is not what slows the others down.
    if hosts & _hosts(fast_runs):
        hosts = frozenset()
    runs = len(slow) + len(fast)
    yield GroupsOfTimes(row.key, len(slow), runs, slower, hosts)


def _two_groups_of_qualities(
    row: Row,
    measures: Measures,
    decision: Decision,
) -> Iterator[Doubt]:
    qualities = measures.quality.values.get(row.key, {}).values()
    values = [*filter(math.isfinite, qualities)]
    groups = _two_groups(values)
    if groups is None or measures.failed.get(row.key):
        return
    low, high = groups
    # Within the margin on both sides, the two groups learned equally well.
    high_mean = sum(high) / len(high)
    margin = accepted_loss(high_mean, row.sense, decision.criteria.margin)
    if min(high) - max(low) <= 2 * margin:
        return
    yield GroupsOfQualities(
        row.key,
        row.metric,
        low=len(low),
        seeds=len(values),
        low_mean=sum(low) / len(low),
        high_mean=sum(high) / len(high),
        digits=row.digits,
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
) -> Iterator[Doubt]:
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
        yield UnclearSamples(choice, ratio, same_quality)


def _hosts(runs: Iterable[Run]) -> frozenset[str]:
    hosts: set[str] = set()
    for run in runs:
        hosts.update(run.result.hosts or run.rank_hosts)
    return frozenset(hosts)
