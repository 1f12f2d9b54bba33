"""What a study leaves open, and the runs that would settle it."""

from collections.abc import Sequence

from scalestudy.analysis.decision import Decision, is_undecided
from scalestudy.analysis.runs import Key, Planned, metric_label
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row
from scalestudy.study.state import State

UNDONE: tuple[State, ...] = ("failed", "cancelled", "running", "queued", "missing")


def open_questions(
    rows: Sequence[Row], planned: Sequence[Planned], decision: Decision, by_rows: bool = False
) -> list[str]:
    """One sentence for each thing that could not be concluded, with what would settle it.

    Args:
        rows: Finished rows.
        planned: What the study asked for.
        decision: What was concluded.
        by_rows: Whether runs were taken row by row, so that drift of the machine differs between rows.
    """
    return [
        *_unfinished(planned),
        *_single_seeds(rows),
        *_costs(decision),
        *_qualities(rows, decision),
        *_unknown(rows),
        *_undirected(rows),
        *_relative(decision),
        *_untimed(rows),
        *([_BY_ROWS] if by_rows else []),
    ]


_BY_ROWS = (
    "Runs were taken row by row: slow drift of the machine looks like a difference between rows, and no"
    " interval shows it. Run in blocks: --order blocks."
)


def _costs(decision: Decision) -> list[str]:
    """Cost efficiencies whose intervals hold the target, and the seeds that would settle them."""
    prices = decision.prices or {}
    asked = {decision.choice, *(each.key for each in decision.passed_over)}
    if decision.kind in ("uncertain", "none"):
        asked = set(prices)
    sentences = []
    for key in (
        key
        for key in prices
        if key in asked and decision.reference and key.workers > decision.reference.workers
    ):
        price = prices[key]
        found = price.efficiency
        if not found.contains(decision.target) and not is_undecided(price, decision.target):
            continue
        settle = (
            f"about {price.seeds} seeds would settle it"
            if price.seeds
            else "more than 50 seeds would be needed"
        )
        sentences.append(
            f"Whether {key.label} reaches a cost efficiency of {decision.target:g}: {_ends(found)};"
            f" {settle}, run where nothing else computes."
        )
    return sentences


def _qualities(rows: Sequence[Row], decision: Decision) -> list[str]:
    verdicts = decision.verdicts or {}
    unclear = [row.key for row in rows if row.runs > 1 and verdicts[row.key].kind == "unclear"]
    if not unclear:
        return []
    return [f"More seeds are needed to tell whether quality suffers: {_short(_labels(unclear))}."]


def _relative(decision: Decision) -> list[str]:
    if not decision.relative or decision.reference is None:
        return []
    return [
        f"No one-worker run was timed: costs and qualities are relative to {decision.reference.label}."
        " Add 1 to the workers to know what the first step costs."
    ]


def _ends(found: Estimate) -> str:
    return f"{found.value:.2f}, 95 % interval {found.low:.3g} to {found.high:.3g}"


def _labels(keys: Sequence[Key]) -> list[str]:
    return [key.label for key in keys]


def _unfinished(planned: Sequence[Planned]) -> list[str]:
    sentences = []
    for state in UNDONE:
        names = [point.name for point in planned if point.state == state]
        if names:
            noun = "run is" if len(names) == 1 else "runs are"
            if state == "failed":
                noun = noun.partition(" ")[0]
            sentences.append(f"{len(names)} {noun} {state}: {_short(names)}.")
    damaged = [point for point in planned if point.state == "corrupt"]
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
