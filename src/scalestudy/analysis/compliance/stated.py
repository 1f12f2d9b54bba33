"""Stated speed-ups and efficiencies that do not follow from the numbers beside them; data that were none."""

from scalestudy.analysis.compliance.base import Finding, where
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.table import Row

LEAST = 0.02


def stated(findings: Findings) -> list[Finding]:
    """Rows whose own words differ from what their numbers give."""
    found = []
    for row in findings.rows:
        runs = findings.measures.groups[row.key]
        computed = {"speedup": row.speed.steady.value, "efficiency": row.efficiency.value}
        for name, relative in computed.items():
            said, unit = runs[0].stated.get(name), _unit(name, row, findings)
            value = relative * unit if relative and unit else None
            if said and value and abs(said / value - 1) > LEAST:
                word = {"speedup": "speed-up"}.get(name, name)
                found.append(
                    Finding(
                        "wrong",
                        f"The {word} stated is another",
                        where(runs),
                        f"{row.key.label}: its own numbers give another {word} than it states.",
                        f"{word} {said:.2f}",
                        f"{value:.2f}",
                    )
                )
    return found


def _unit(name: str, row: Row, findings: Findings) -> float | None:
    """What a relative value is multiplied by: what is stated of the row that it is against."""
    if row.speed.baseline is None or row.speed.against == 1:
        return 1.0
    return findings.measures.groups[row.speed.baseline][0].stated.get(name)


def synthetic(findings: Findings) -> list[Finding]:
    """Rates of computing alone."""
    runs = [run for run in findings.runs if run.stated.get("synthetic")]
    if not runs:
        return []
    return [
        Finding(
            "note",
            "Synthetic data",
            where(runs),
            "Nothing was read: a training that reads its data is slower, and scales no better.",
        )
    ]


def added_up(findings: Findings) -> list[Finding]:
    """Whole times that are the sum over workers, as their epochs show."""
    found = []
    for run in findings.runs:
        total, count = run.result.training_seconds, run.result.workers
        epochs = run.epochs[-1].elapsed_training_seconds if run.epochs and run.foreign else None
        if total and epochs and count > 1 and abs(total / epochs / count - 1) < 0.1:
            found.append(
                Finding(
                    "doubtful",
                    "Time added up over workers",
                    where([run]),
                    f"{run.result.name}: its whole time is {count} times that of its epochs.",
                    f"{total:,.0f} s",
                    f"{epochs:,.0f} s",
                )
            )
    return found
