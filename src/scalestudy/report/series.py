"""What the figures draw: rows of a study as plain records, downsampled and labelled."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import Basis
from scalestudy.analysis.runs import Key, describe
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row

MOST_COLOURS = 7
"""Series that colours and shapes tell apart in one figure."""
MOST_PANELS = 12

Records = list[dict[str, Any]]

BASIS_WORDS: dict[Basis, str] = {
    "throughput": "throughput",
    "epoch": "epoch time",
    "training": "training time",
}
"""What speed-up is a ratio of."""


def basis_of(rows: Sequence[Row]) -> str:
    """What speed-up is a ratio of in these rows, in words."""
    return " / ".join(dict.fromkeys(BASIS_WORDS[row.basis] for row in rows)) or BASIS_WORDS["throughput"]


@dataclass(frozen=True)
class Labels:
    """How series are told apart: by strategy, by variant (other swept values), or by both."""

    strategies: list[str]
    variants: list[str]

    @property
    def by_strategy(self) -> bool:
        """Whether colour means the strategy (else the variant)."""
        return len(self.strategies) > 1 or len(self.variants) < 2

    @property
    def names(self) -> list[str]:
        """Values of the coloured field, in order."""
        return self.strategies if self.by_strategy else self.variants

    def fields(self, key: Key) -> dict[str, str]:
        """The fields of a record that say which series it belongs to."""
        return {
            "series": key.strategy if self.by_strategy else short(key),
            "strategy": key.strategy,
            "variant": short(key),
        }

    def shown(self, records: Records) -> list[str]:
        """Names of the series that records are of, in order."""
        drawn = {record["series"] for record in records}
        return [name for name in self.names if name in drawn]


def labels(findings: Findings) -> Labels:
    """The series of a study, in reading order."""
    keys = [row.key for row in findings.rows]
    return Labels(
        list(dict.fromkeys(key.strategy for key in keys)), list(dict.fromkeys(short(key) for key in keys))
    )


def panels(findings: Findings) -> list[str]:
    """Variants that stand in panels of their own, where colour cannot tell them apart."""
    named = labels(findings)
    both = len(named.strategies) > 1 and len(named.variants) > 1
    return named.variants if both or len(named.variants) > MOST_COLOURS else []


def short(key: Key) -> str:
    """Other swept values with the last part of their names: `batch_size = 8`."""
    return describe({name.split(".")[-1]: value for name, value in key.swept.items()})


def series_name(key: Key) -> str:
    """Strategy, and the other swept values where there are any: `horovod (batch_size = 8)`."""
    return f"{key.strategy} ({short(key)})" if key.swept else key.strategy


def bar(key: Key) -> str:
    """Label of a bar: `horovod × 8`, with the other swept values."""
    return f"{key.strategy} × {key.workers}" + (f", {short(key)}" if key.swept else "")


def measured(findings: Findings, of: Callable[[Row], Estimate]) -> Records:
    """One record a row that has this value: workers, value, low, high and what a tooltip shows."""
    named = labels(findings)
    records = []
    for row in findings.rows:
        estimate = of(row)
        if estimate.value is None or not isfinite(estimate.value):
            continue
        fields = named.fields(row.key) | {"workers": row.workers, "runs": row.runs}
        records.append(fields | ends(estimate))
    return records


def ends(estimate: Estimate) -> dict[str, Any]:
    """A finite value, the ends of its interval where it has one, and what a tooltip shows."""
    assert estimate.value is not None
    record: dict[str, Any] = {"value": rounded(estimate.value), "text": _in_words(estimate)}
    if estimate.low is not None and estimate.high is not None and isfinite(estimate.high):
        record |= {"low": rounded(estimate.low), "high": rounded(estimate.high)}
    return record


def reach(records: Records) -> list[float]:
    """All values of records and the ends of their intervals."""
    return [float(record[end]) for record in records for end in ("value", "low", "high") if end in record]


def _in_words(estimate: Estimate) -> str:
    """A value with its interval, as a tooltip shows it."""
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return f"{estimate.value:.3g}"
    return f"{estimate.value:.4g} (95 %: {estimate.low:.4g} to {estimate.high:.4g})"


def rounded(value: float) -> float:
    """Five digits: more cannot be seen."""
    return float(f"{value:.5g}")


def downsampled(values: Sequence[int], most: int, keep: Collection[int] = ()) -> list[int]:
    """At most so many of these positive numbers, sorted: the ends, `keep`, and others evenly by ratio.

    Args:
        values: What there is.
        most: How many are wanted, 2 at least; exceeded where `keep` alone is more.
        keep: Those that are kept in any case.
    """
    every = sorted(set(values))
    if len(every) <= most:
        return every
    chosen = {every[0], every[-1], *(value for value in every if value in keep)}
    while len(chosen) < most:
        # The one that is furthest from all that are chosen already.
        chosen.add(max(every, key=lambda value: min(abs(log(value / other)) for other in chosen)))
    return sorted(chosen)
