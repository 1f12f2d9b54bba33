"""The losses that figures draw, thinned: of many worker counts some, of many epochs some."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key, Run
from scalestudy.report.format import time_unit
from scalestudy.report.series import Records, labels, rounded, short
from scalestudy.report.thin import thinned

MOST_EPOCHS = 60
"""Epochs drawn of a line; more cannot be told apart and would only swell the page."""
MOST_COUNTS = 6
MOST_PANELS = 12
MOST_RECORDS = 4000
"""Points of all lines together, which decide what the page weighs; no line has fewer than `LEAST_EPOCHS`."""
LEAST_EPOCHS = 12


def losses(findings: Findings) -> tuple[Records, str, str]:
    """Mean losses over the seeds by epoch, the unit of their time, and what is left out, in words."""
    groups = findings.measures.groups
    rows, few = _rows(findings, [key for key, runs in groups.items() if any(run.epochs for run in runs)])
    last = [run.epochs[-1] for key in rows for run in groups[key] if run.epochs]
    longest = [record.elapsed_training_seconds or 0.0 for record in last]
    unit, length = time_unit(longest)
    most = max(LEAST_EPOCHS, min(MOST_EPOCHS, MOST_RECORDS // max(1, 2 * len(rows))))
    named = labels(findings)
    records: Records = []
    for key in rows:
        fields = named.fields(key) | {"panel": panel(key), "workers": key.workers}
        for place in _means(groups[key], most, length):
            records += [fields | place["at"] | each for each in place["losses"]]
    return records, unit, few


def panel(key: Key) -> str:
    """Heading of a panel: `horovod`, or `horovod, batch_size = 8`."""
    return f"{key.strategy}, {short(key)}" if key.swept else key.strategy


def _rows(findings: Findings, keys: Sequence[Key]) -> tuple[list[Key], str]:
    """Rows whose losses are drawn: the advised one, and an even choice among the others."""
    choice = findings.advice.choice
    panels = list(dict.fromkeys(panel(key) for key in keys))
    kept = panels[:MOST_PANELS]
    counts = thinned([key.workers for key in keys], MOST_COUNTS, {choice.workers} if choice else ())
    rows = [key for key in keys if panel(key) in kept and key.workers in counts]
    return rows, f" Of {len(keys)} rows, {len(rows)} are drawn." if len(rows) < len(keys) else ""


def _means(runs: Sequence[Run], most: int, length: float) -> list[dict[str, Any]]:
    """Means over a row's runs at some of their epochs: where they are, and the losses that are numbers."""
    by_epoch: dict[int, list[dict[str, float | None]]] = {}
    for run in runs:
        for epoch, place in _places(run, length):
            by_epoch.setdefault(epoch, []).append(place)
    every = sorted(by_epoch)
    step = max(1, -(-len(every) // most))
    found = []
    for epoch in sorted({*every[::step], *every[-1:]}):
        at: dict[str, float | None] = {"epoch": epoch}
        at |= {
            name: _mean([each[name] for each in by_epoch[epoch]]) for name in ("updates", "samples", "time")
        }
        sets = ("training", "validation")
        losses = {
            name: _mean([each[name] for each in by_epoch[epoch] if each[name] is not None]) for name in sets
        }
        drawn = [{"set": name, "loss": value} for name, value in losses.items() if value is not None]
        found.append({"at": at, "losses": drawn})
    return found


def _places(run: Run, length: float) -> Iterator[tuple[int, dict[str, float | None]]]:
    """Each epoch with what was done by its end, and its losses; None where that is not known."""
    updates: float | None = 0
    samples: float | None = 0
    for record in run.epochs:
        updates = None if updates is None or record.steps is None else updates + record.steps
        samples = None if samples is None or record.samples is None else samples + record.samples
        seconds = record.elapsed_training_seconds
        yield (
            record.epoch,
            {
                "updates": updates,
                "samples": samples,
                "time": None if seconds is None else seconds / length,
                "training": record.loss,
                "validation": record.validation.get("loss"),
            },
        )


def _mean(values: Sequence[float | None]) -> float | None:
    """None where one is not known or no number, or where there is none."""
    found = [value for value in values if value is not None and isfinite(value)]
    return rounded(sum(found) / len(found)) if found and len(found) == len(values) else None
