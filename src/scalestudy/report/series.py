"""What the figures draw: rows of a study as plain records, thinned and labelled."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key, describe
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row
from scalestudy.report.format import time_unit
from scalestudy.report.thin import thinned

MOST_ROWS = 30
"""Rows of the table that a figure shows where each has a place of its own."""
MOST_COLOURS = 7
"""Series that colours and shapes tell apart in one figure."""
MOST_PHASES = 7
"""Phases shown by a colour of their own."""

Records = list[dict[str, Any]]


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
    def both(self) -> bool:
        """Whether a second channel has to show the variant."""
        return len(self.strategies) > 1 and len(self.variants) > 1

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


def labels(findings: Findings) -> Labels:
    """The series of a study, in reading order."""
    keys = [row.key for row in findings.rows]
    return Labels(
        list(dict.fromkeys(key.strategy for key in keys)), list(dict.fromkeys(short(key) for key in keys))
    )


def panels(findings: Findings) -> list[str]:
    """Variants that stand in panels of their own, where colour cannot tell them apart."""
    named = labels(findings)
    return named.variants if named.both or len(named.variants) > MOST_COLOURS else []


def short(key: Key) -> str:
    """Other swept values with the last part of their names: `batch_size = 8`."""
    return describe({name.split(".")[-1]: value for name, value in key.swept.items()})


def measured(findings: Findings, of: Callable[[Row], Estimate]) -> Records:
    """One record a row that has this value: workers, value, low, high and what a tooltip shows."""
    named = labels(findings)
    records = []
    for row in findings.rows:
        found = of(row)
        if found.value is None or not isfinite(found.value):
            continue
        record: dict[str, Any] = {"workers": row.workers, "runs": row.runs, "value": rounded(found.value)}
        if found.low is not None and found.high is not None and isfinite(found.high):
            record |= {"low": rounded(found.low), "high": rounded(found.high)}
        records.append(named.fields(row.key) | record | {"text": _text(found)})
    return records


def reach(records: Records) -> list[float]:
    """All values of records and the ends of their intervals."""
    return [float(record[end]) for record in records for end in ("value", "low", "high") if end in record]


def phases(findings: Findings) -> tuple[Records, list[str], str]:
    """Mean seconds by phase, the phases in order, and the unit of time."""
    shown = _largest(findings.phases.values())
    unit, length = time_unit([sum(found.values()) for found in findings.phases.values()])
    records: Records = []
    for key in some_rows(findings):
        found = findings.phases[key]
        total = sum(found.values()) or 1.0
        for order, (name, members) in enumerate(shown.items()):
            seconds = sum(found.get(member, 0.0) for member in members)
            if seconds > 0:
                records.append(
                    {"bar": bar(key), "phase": name, "order": order, "time": rounded(seconds / length)}
                    | {"share": rounded(seconds / total)}
                )
    return records, list(shown), unit


def _largest(found: Iterable[dict[str, float]]) -> dict[str, list[str]]:
    """The phases to show, each with those it stands for: the smallest of many are put together."""
    totals: dict[str, float] = {}
    for seconds in found:
        for name, value in seconds.items():
            totals[name] = totals.get(name, 0.0) + value
    order = [name for name in totals if name != "other"]
    kept = sorted(order, key=lambda name: -totals[name])
    if len(totals) > MOST_PHASES:
        kept = kept[: MOST_PHASES - 1]
    rest = [name for name in totals if name not in kept]
    return {name: [name] for name in order if name in kept} | ({"other": rest} if rest else {})


def some_rows(findings: Findings) -> list[Key]:
    """Rows for figures that give each a place of its own: all, or of many worker counts some."""
    keys = list(findings.phases)
    series_ = len({(key.strategy, key.variant) for key in keys})
    advised = {findings.advice.choice.workers} if findings.advice.choice else set()
    counts = thinned([key.workers for key in keys], max(2, MOST_ROWS // max(1, series_)), advised)
    return [key for key in keys if key.workers in counts][:MOST_ROWS] if len(keys) > MOST_ROWS else keys


def bar(key: Key, words: str | None = None) -> str:
    """Label of a bar or panel: `horovod × 8`, with the other swept values unless other words are given."""
    words = short(key) if words is None else words
    return f"{key.strategy} × {key.workers}" + (f", {words}" if words else "")


def _text(found: Estimate) -> str:
    assert found.value is not None
    if found.low is None or found.high is None or found.low == found.high:
        return f"{found.value:.3g}"
    return f"{found.value:.4g} (95 %: {found.low:.4g} to {found.high:.4g})"


def rounded(value: float) -> float:
    """Five digits: more cannot be seen."""
    return float(f"{value:.5g}")
