"""What the figures draw: rows of a study as plain records, thinned and labelled."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key, Run, describe, grouped
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row
from scalestudy.report.format import time_unit

MOST_POINTS = 60
"""Epochs drawn per line; more cannot be told apart and would only swell the page."""
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


def short(key: Key) -> str:
    """Other swept values with the last part of their names: `batch_size = 8`."""
    return describe({name.split(".")[-1]: value for name, value in key.swept.items()})


def measured(findings: Findings, column: str, keep: Sequence[Row] | None = None) -> Records:
    """One record a row that has this value: workers, value, low, high and what a tooltip shows."""
    named = labels(findings)
    records = []
    for row in findings.rows if keep is None else keep:
        found = row.measured(column)
        if found.value is None or not isfinite(found.value):
            continue
        record: dict[str, Any] = {"workers": row.workers, "runs": row.runs, "value": _round(found.value)}
        if found.low is not None and found.high is not None and isfinite(found.high):
            record |= {"low": _round(found.low), "high": _round(found.high)}
        records.append(named.fields(row.key) | record | {"text": _text(found)})
    return records


def losses(findings: Findings) -> tuple[Records, str]:
    """Mean losses over the seeds by epoch, and the unit of their training time."""
    longest = [run.epochs[-1].elapsed_training_seconds or 0.0 for run in findings.runs if run.epochs]
    unit, length = time_unit(longest)
    named = labels(findings)
    records: Records = []
    for key, runs in grouped(findings.runs).items():
        for epoch in _thinned(runs):
            found = [record for run in runs for record in run.epochs if record.epoch == epoch]
            elapsed = [r.elapsed_training_seconds for r in found if r.elapsed_training_seconds is not None]
            time = sum(elapsed) / len(elapsed) / length if len(elapsed) == len(found) else None
            sets = {
                "training": [record.loss for record in found if record.loss is not None],
                "validation": [r.validation["loss"] for r in found if "loss" in r.validation],
            }
            for name, values in sets.items():
                if values and all(isfinite(value) for value in values):
                    records.append(
                        named.fields(key)
                        | {"panel": panel(key), "workers": key.workers, "set": name, "epoch": epoch}
                        | {"time": None if time is None else _round(time)}
                        | {"loss": _round(sum(values) / len(values))}
                    )
    return records, unit


def panel(key: Key) -> str:
    """Heading of a panel: `horovod`, or `horovod, batch_size = 8`."""
    return f"{key.strategy}, {short(key)}" if key.swept else key.strategy


def phases(findings: Findings) -> tuple[Records, list[str], str]:
    """Mean seconds by phase, the phases in order, and the unit of time."""
    shown = _largest(findings.phases.values())
    unit, length = time_unit([sum(found.values()) for found in findings.phases.values()])
    records: Records = []
    for key, found in findings.phases.items():
        total = sum(found.values()) or 1.0
        for order, (name, members) in enumerate(shown.items()):
            seconds = sum(found.get(member, 0.0) for member in members)
            if seconds > 0:
                records.append(
                    {"bar": bar(key), "phase": name, "order": order, "time": _round(seconds / length)}
                    | {"share": _round(seconds / total)}
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


def bar(key: Key) -> str:
    """Label of a bar: `horovod × 8`."""
    return f"{key.strategy} × {key.workers}" + (f", {short(key)}" if key.swept else "")


def _thinned(runs: Sequence[Run]) -> list[int]:
    epochs = sorted({record.epoch for run in runs for record in run.epochs})
    step = max(1, -(-len(epochs) // MOST_POINTS))
    return sorted({*epochs[::step], *epochs[-1:]})


def _text(found: Estimate) -> str:
    assert found.value is not None
    if found.low is None or found.high is None or found.low == found.high:
        return f"{found.value:.3g}"
    return f"{found.value:.4g} (95 %: {found.low:.4g} to {found.high:.4g})"


def _round(value: float) -> float:
    return float(f"{value:.5g}")
