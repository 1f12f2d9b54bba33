"""What a study leaves open, and the runs that would settle it."""

from collections.abc import Sequence

from scalestudy.analysis.runs import Planned
from scalestudy.analysis.table import Row
from scalestudy.study.state import State

UNDONE: tuple[State, ...] = ("failed", "cancelled", "running", "queued", "missing")


def gaps(rows: Sequence[Row], planned: Sequence[Planned]) -> list[str]:
    """One sentence for each thing that could not be concluded."""
    return [*_unfinished(planned), *_single_seeds(rows), *_two_seeds(rows), *_untimed(rows)]


def _unfinished(planned: Sequence[Planned]) -> list[str]:
    sentences = []
    for state in UNDONE:
        names = [point.name for point in planned if point.state == state]
        if names:
            noun = "run is" if len(names) == 1 else "runs are"
            if state == "failed":
                noun = noun.partition(" ")[0]
            sentences.append(f"{len(names)} {noun} {state}: {_short(names)}.")
    return sentences


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
