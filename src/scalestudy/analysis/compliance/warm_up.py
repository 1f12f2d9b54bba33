"""Times that have the first epoch in them, in which a framework compiles and caches fill."""

from scalestudy.analysis.compliance.base import Finding, where
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.rates import epoch_seconds
from scalestudy.analysis.runs import Run

SLOW = 1.5
"""Factor by which a first epoch is longer than the others where it warms up."""
LEAST = 0.01


def warm_up(findings: Findings) -> list[Finding]:
    """Rows whose speed-up of whole times a slow first epoch moves, and runs of one epoch."""
    found = []
    for row in findings.rows:
        runs = [run for run in findings.measures.groups[row.key] if run.foreign]
        if not runs:
            continue
        if all(run.result.epochs == 1 for run in runs):
            found.append(
                Finding(
                    "doubtful",
                    "One epoch",
                    where(runs),
                    f"{row.key.label} trained for one epoch: its time has start-up and compilation in it, and"
                    " its quality is that of a model at its beginning.",
                )
            )
    return [*found, *_moved(findings)]


def _moved(findings: Findings) -> list[Finding]:
    """For each series the row whose speed-up of whole times lies furthest from that of steady epochs."""
    furthest: dict[tuple[str, str], tuple[float, Finding]] = {}
    for row in findings.rows:
        runs = [run for run in findings.measures.groups[row.key] if run.foreign]
        steady, whole = row.speed.steady.value, row.speed.training.value
        slow = [first for run in runs if (first := _first(run)) is not None and first > SLOW]
        if row.basis != "epoch" or not slow or not steady or not whole or abs(whole / steady - 1) <= LEAST:
            continue
        finding = Finding(
            "note",
            "Warm-up counted in",
            where(runs),
            f"{row.key.label}: the first epoch takes {max(slow):.1f} times as long as the others, and whole"
            " training times hold it.",
            f"speed-up {whole:.2f} of whole times",
            f"{steady:.2f} of steady epochs",
        )
        series, change = (row.strategy, row.key.variant), abs(whole / steady - 1)
        if series not in furthest or change > furthest[series][0]:
            furthest[series] = change, finding
    return [finding for _, finding in furthest.values()]


def _first(run: Run) -> float | None:
    """How many times as long the first epoch takes as the others."""
    steady = epoch_seconds(run)
    first = run.epochs[0].train_seconds if run.epochs else None
    return first / steady if first and steady else None
