"""Hours of a run from its start to its result, which is what sites bill."""

from scalestudy.analysis.table import Row
from scalestudy.statement.subject import Subject

FIXED = ("start-up", "framework", "join", "build", "compile", "saving", "proof")
"""Phases of a run that do not grow with its epochs. All others are taken to, also those without a name."""


def hours_of(subject: Subject, row: Row, epochs: int | None = None) -> float | None:
    """Mean hours of a row's runs, with as many epochs as are asked for; None where nobody knows.

    What does not repeat in every epoch is counted once. Where the phases of the runs are not known, it is
    the time of training alone.
    """
    measured = epochs_of(subject, row)
    factor = epochs / measured if epochs and measured else 1.0
    if epochs and not measured:
        return None
    phases = subject.findings.phases.get(row.key, {})
    if phases:
        fixed = sum(seconds for name, seconds in phases.items() if name in FIXED)
        return (fixed + factor * (sum(phases.values()) - fixed)) / 3600
    seconds = row.training_seconds.value
    return None if seconds is None else factor * seconds / 3600


def epochs_of(subject: Subject, row: Row) -> int | None:
    """Epochs of a row's runs; None where they differ, or nobody knows."""
    found = {run.result.epochs for run in subject.runs(row)}
    return found.pop() if len(found) == 1 else None
