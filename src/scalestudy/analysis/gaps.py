"""What a study leaves open, and the runs that would settle it."""

from collections.abc import Sequence

from scalestudy.analysis.certainty import is_undecided
from scalestudy.analysis.runs import Planned, metric_label
from scalestudy.analysis.table import Row
from scalestudy.study.state import DAMAGED, State

UNDONE: tuple[State, ...] = ("failed", "cancelled", "running", "queued", "missing")


def gaps(rows: Sequence[Row], planned: Sequence[Planned], target: float) -> list[str]:
    """One sentence for each thing that could not be concluded; `target` is the efficiency asked for."""
    return [
        *_unfinished(planned),
        *_single_seeds(rows),
        *_two_seeds(rows),
        *_unknown(rows),
        *_undirected(rows),
        *_undecided(rows, target),
        *_untimed(rows),
    ]


def _unfinished(planned: Sequence[Planned]) -> list[str]:
    sentences = []
    for state in UNDONE:
        names = [point.name for point in planned if point.state == state]
        if names:
            noun = "run is" if len(names) == 1 else "runs are"
            if state == "failed":
                noun = noun.partition(" ")[0]
            sentences.append(f"{len(names)} {noun} {state}: {_short(names)}.")
    damaged = [point for point in planned if point.state in DAMAGED]
    return sentences + [f"{each.name} is {each.state}, and not counted: {each.reason}" for each in damaged]


def _single_seeds(rows: Sequence[Row]) -> list[str]:
    alone = [row.key.label for row in rows if row.runs == 1]
    if not alone:
        return []
    if len(alone) == len(rows):
        return [
            "One seed only: no interval anywhere, so chance cannot be ruled out. Sweep three or more seeds."
        ]
    return [f"One seed only, so no interval: {_short(alone)}."]


def _two_seeds(rows: Sequence[Row]) -> list[str]:
    unclear = [row.key.label for row in rows if row.runs > 1 and row.verdict.kind == "unclear"]
    if not unclear:
        return []
    return [f"More seeds are needed to tell whether quality suffers: {_short(unclear)}."]


def _unknown(rows: Sequence[Row]) -> list[str]:
    found = [row.key.label for row in rows if row.verdict.kind == "unknown"]
    if not found:
        return []
    whose = "any row" if len(found) == len(rows) else _short(found)
    return [f"Quality is not known of {whose}: more workers may have cost some."]


def _undirected(rows: Sequence[Row]) -> list[str]:
    unknown = dict.fromkeys(row.metric for row in rows if row.sense.better is None and row.metric)
    return [
        f"Whether higher or lower {metric_label(metric)} is better is not known, so there is no verdict on"
        f" quality. {_say(rows, metric)}"
        for metric in unknown
    ]


def _say(rows: Sequence[Row], metric: str) -> str:
    if all(row.source for row in rows if row.metric == metric):
        return "Say it with --better higher, or lower."
    return f'Add better = {{"{metric}": "higher"}}, or "lower", to the task file and run again.'


def _undecided(rows: Sequence[Row], target: float) -> list[str]:
    wide = [
        f"{row.key.label} ({row.speed.steady.value:.2f}, 95 % interval {row.speed.steady.low:.3g} to"
        f" {row.speed.steady.high:.3g})"
        for row in rows
        if is_undecided(row, target)
    ]
    if not wide:
        return []
    return [
        f"Speed-ups too uncertain to decide by: {_short(wide)}. More seeds would settle them, run where"
        " nothing else computes."
    ]


def _untimed(rows: Sequence[Row]) -> list[str]:
    reasons: dict[str, dict[tuple[str, str], list[int]]] = {}
    for row in rows:
        if row.speed.reason is not None:
            series = reasons.setdefault(row.speed.reason, {})
            series.setdefault((row.strategy, row.key.details), []).append(row.workers)
    return [f"No speed-up of {_short(_series(found))}: {reason}." for reason, found in reasons.items()]


def _series(found: dict[tuple[str, str], list[int]]) -> list[str]:
    names = []
    for (strategy, details), counts in found.items():
        noun = "worker" if counts == [1] else "workers"
        swept = f" ({details})" if details else ""
        names.append(f"{strategy} on {_counted(counts)} {noun}{swept}")
    return names


def _counted(counts: Sequence[int]) -> str:
    *first, last = [str(count) for count in counts]
    return f"{', '.join(first)} and {last}" if first else last


def _short(names: Sequence[str], most: int = 6) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
