"""Hours of a run from its start to its result, which is what sites bill."""

from scalestudy.analysis.table import Row
from scalestudy.features.proposal.subject import Subject

FIXED = ("start-up", "framework", "join", "build", "compile", "saving", "proof")
"""Phases of a run that do not grow with its epochs. All others are taken to, also those without a name."""


def hours_of(subject: Subject, row: Row, epochs: int | None = None) -> float | None:
    """Hours of one of a row's runs, with as many epochs as are asked for; None where nobody knows.

    That is wall clock, as sites bill it: what does not repeat in every epoch is counted once. Where only the
    time of training is known, it is that.
    """
    measured = epochs_of(subject, row)
    if epochs and not measured:
        return None
    wall, training = row.wall_seconds.value, row.training_seconds.value
    phases = subject.findings.phases.get(row.key, {})
    repeated = sum(seconds for name, seconds in phases.items() if name not in FIXED) if phases else training
    total = wall if wall is not None else sum(phases.values()) if phases else training
    if total is None or repeated is None:
        return None
    more = epochs / measured - 1 if epochs and measured else 0.0
    return (total + more * repeated) / 3600


def epochs_of(subject: Subject, row: Row) -> int | None:
    """Epochs of a row's runs; None where they differ, or nobody knows."""
    found = {run.result.epochs for run in subject.runs(row)}
    return found.pop() if len(found) == 1 else None
