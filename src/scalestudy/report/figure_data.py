"""Data of the figures: rows of a study as records, downsampled and labelled, and the axis of workers."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import TYPE_CHECKING, Any

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import Basis
from scalestudy.analysis.runs import Key, describe_swept
from scalestudy.analysis.study_table import Row

if TYPE_CHECKING:
    import altair as alt


MOST_COLOURS = 7
"""Number of series that can be distinguished by colour and shape in one figure."""
MOST_PANELS = 12

Records = list[dict[str, Any]]

BASIS_WORDS: dict[Basis, str] = {
    "throughput": "throughput",
    "epoch": "epoch time",
    "training": "training time",
}
"""Names of the quantities whose ratio is the speed-up."""
WIDE = 5
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""
MOST_TICKS = 9


def basis_of(rows: Sequence[Row]) -> str:
    """Name of the quantity whose ratio is the speed-up of these rows."""
    names: dict[str, None] = {}
    for row in rows:
        names[BASIS_WORDS[row.basis]] = None
    return " / ".join(names) or BASIS_WORDS["throughput"]


@dataclass(frozen=True)
class Labels:
    """How series are distinguished: by strategy, by variant (other swept values), or by both."""

    strategies: list[str]
    variants: list[str]

    @property
    def by_strategy(self) -> bool:
        """Whether colour stands for the strategy; otherwise for the variant."""
        return len(self.strategies) > 1 or len(self.variants) < 2

    @property
    def names(self) -> list[str]:
        """Values of the coloured field, in order."""
        if self.by_strategy:
            return self.strategies
        return self.variants

    @property
    def swept_tip(self) -> dict[str, str]:
        """The field of other swept values in tooltips with its title; none if nothing else was swept."""
        if len(self.variants) > 1:
            return {"variant": "Swept"}
        return {}

    def fields(self, key: Key) -> dict[str, str]:
        """The fields of a record that identify its series."""
        variant = short(key)
        series = variant
        if self.by_strategy:
            series = key.strategy
        return {"series": series, "strategy": key.strategy, "variant": variant}

    def shown(self, records: Records) -> list[str]:
        """Names of the series in records, in order."""
        drawn = set(column(records, "series"))
        return [name for name in self.names if name in drawn]


def labels(findings: Findings) -> Labels:
    """The series of a study, in reading order."""
    strategies: dict[str, None] = {}
    variants: dict[str, None] = {}
    for row in findings.rows:
        strategies[row.strategy] = None
        variants[short(row.key)] = None
    return Labels(list(strategies), list(variants))


def legend_title(findings: Findings) -> str:
    """What the colours stand for: strategies, or the names of other swept values."""
    if labels(findings).by_strategy:
        return "Strategy"
    return ", ".join(findings.rows[0].key.swept)


def panels(findings: Findings) -> list[str]:
    """Variants that need separate panels, because colour alone cannot distinguish them."""
    named = labels(findings)
    # One colour cannot stand for a strategy and for a variant at once.
    both = len(named.strategies) > 1 and len(named.variants) > 1
    if both or len(named.variants) > MOST_COLOURS:
        return named.variants
    return []


def short(key: Key) -> str:
    """Other swept values, with the last part of their names: `batch_size = 8`."""
    values = {}
    for name, value in key.swept.items():
        *_, last = name.split(".")
        values[last] = value
    return describe_swept(values)


def series_name(key: Key) -> str:
    """Strategy, with the other swept values if there are any: `horovod (batch_size = 8)`."""
    if not key.swept:
        return key.strategy
    return f"{key.strategy} ({short(key)})"


def bar(key: Key) -> str:
    """Label of a bar: `horovod × 8`, with the other swept values."""
    text = f"{key.strategy} × {key.workers}"
    if key.swept:
        text += f", {short(key)}"
    return text


def measured_records(findings: Findings, of: Callable[[Row], Estimate]) -> Records:
    """One record for each row with this value: workers, value, low, high and the tooltip's text."""
    named = labels(findings)
    choice = findings.advice.choice
    records = []
    for row in findings.rows:
        estimate = of(row)
        if estimate.value is None or not isfinite(estimate.value):
            continue
        record: dict[str, Any] = dict(named.fields(row.key))
        record["workers"] = row.workers
        record["runs"] = row.runs
        record["advised"] = choice is not None and row.key == choice.key
        records.append(record | ends(estimate))
    return records


def ends(estimate: Estimate) -> dict[str, Any]:
    """A finite value, the ends of its interval if it has one, and the tooltip's text."""
    assert estimate.value is not None
    record: dict[str, Any] = {
        "value": rounded(estimate.value),
        "text": _in_words(estimate),
    }
    low, high = estimate.low, estimate.high
    # JSON, in which a page holds its data, has no infinity.
    if low is not None and high is not None and isfinite(high):
        record |= {"low": rounded(low), "high": rounded(high)}
    return record


def column(records: Records, field: str) -> list[Any]:
    """Values of a field, without records that lack it."""
    return [record[field] for record in records if field in record]


def values_and_ends(records: Records) -> list[float]:
    """All values of records and the ends of their intervals."""
    numbers = []
    for record in records:
        for end in ("value", "low", "high"):
            if end in record:
                numbers.append(float(record[end]))
    return numbers


def _in_words(estimate: Estimate) -> str:
    low, high = estimate.low, estimate.high
    if low is None or high is None or low == high:
        return f"{estimate.value:.3g}"
    return f"{estimate.value:.4g} (95 %: {low:.4g} to {high:.4g})"


def rounded(value: float) -> float:
    """Round to five significant digits, since more cannot be seen."""
    return float(f"{value:.5g}")


def downsample(
    values: Sequence[int],
    most: int,
    keep: Collection[int] = (),
) -> list[int]:
    """At most `most` (2 or more) of these positive numbers, sorted: the ends, `keep`, others evenly by ratio.

    All of `keep` are returned, even if these are more than `most`.
    """
    every = sorted(set(values))
    if len(every) <= most:
        return every
    chosen = {every[0], every[-1]}
    chosen.update(set(every).intersection(keep))

    def distance(value: int) -> float:
        ratios = [abs(log(value / other)) for other in chosen]
        return min(ratios)

    # By ratio, since sweeps double: of 1 to 128 workers, even steps would leave out 2, 4 and 8.
    while len(chosen) < most:
        # The number that is furthest from all chosen ones.
        chosen.add(max(every, key=distance))
    return sorted(chosen)


def is_logarithmic(values: Sequence[float]) -> bool:
    """Whether values span so much that small ones would crowd on a linear axis; not with a zero."""
    least = min(values)
    return least > 0 and max(values) / least > WIDE


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, with twice and five times them if there is room."""
    every, tens = [], []
    for power in range(-9, 10):
        ten = 10.0**power
        if low < ten < high:
            tens.append(ten)
        for tick in (ten, 2 * ten, 5 * ten):
            if low < tick < high:
                every.append(tick)
    if len(every) <= MOST_TICKS:
        return every
    return tens


def domain(counts: Sequence[int]) -> tuple[float, float]:
    """Ends of the axis, with some room so that no point is on an edge."""
    low = min(counts)
    high = max(counts)
    if is_logarithmic(counts):
        return low / 1.15, high * 1.15
    room = 1.0
    if high > low:
        room = max(0.4, 0.04 * (high - low))
    return low - room, high + room


def ticks(counts: Sequence[int]) -> list[int]:
    """The numbers of workers themselves; where two would overlap, only the larger."""
    chosen: list[int] = []
    logarithmic = is_logarithmic(counts)
    largest = max(counts)
    factor = (largest / min(counts)) ** (1 / 20)
    # From the largest on: of two labels that overlap, the larger number stays.
    for count in sorted(set(counts), reverse=True):
        # What a label of this number takes of the axis.
        needed = count + largest / 16
        if logarithmic:
            needed = factor * count
        if not chosen or needed <= chosen[-1]:
            chosen.append(count)
    return chosen[::-1]


def workers_axis(counts: Sequence[int], field: str = "workers") -> "alt.X":
    """Horizontal axis of the number of workers."""
    import altair as alt

    kind: dict[str, Any] = {"zero": False}
    if is_logarithmic(counts):
        # Sweeps double their workers: each doubling is as long as the others.
        kind = {"type": "log", "base": 2}
    ends_of_axis = list(domain(counts))
    scale = alt.Scale(
        domain=ends_of_axis,
        nice=False,
        **kind,
    )
    axis = alt.Axis(
        values=ticks(counts),
        format="d",
        labelOverlap=True,
    )
    return alt.X(
        f"{field}:Q",
        title="Workers",
        scale=scale,
        axis=axis,
    )


def dodge(counts: Sequence[int], index: int, number: int) -> tuple[float, float]:
    """Shift (added, multiplied) that separates series with points at the same number of workers."""
    place = index - (number - 1) / 2
    # On a logarithmic axis equal distances are equal factors.
    if is_logarithmic(counts):
        return 0.0, 1.03**place
    low, high = domain(counts)
    return 0.012 * (high - low) * place, 1.0
