"""What is found in numbers that do not say what they are taken for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scalestudy.analysis.runs import Run

Severity = Literal["wrong", "doubtful", "note"]
"""Wrong: by the numbers themselves. Doubtful: by a sign, which is no proof. Note: to be known beside them."""
SEVERITIES: tuple[Severity, ...] = ("wrong", "doubtful", "note")
MOST_PLACES = 3


@dataclass(frozen=True)
class Finding:
    """One thing found.

    Attributes:
        severity: How sure it is.
        title: What, in a few words.
        where: Files and lines, or rows of ours.
        sentence: Why, and what follows.
        claimed: The number as it stands: "efficiency 0.92 (horovod on 8 workers)"; "" where none moves.
        corrected: What it becomes.
    """

    severity: Severity
    title: str
    where: str
    sentence: str
    claimed: str = ""
    corrected: str = ""


def where(runs: Sequence[Run]) -> str:
    """Files and lines of runs; of ours their names."""
    named = list(dict.fromkeys(str(run.source) if run.source else run.result.name for run in runs))
    rest = f" and {len(named) - MOST_PLACES} more" if len(named) > MOST_PLACES else ""
    return "; ".join(named[:MOST_PLACES]) + rest


def mean_of(values: Sequence[float | None]) -> float | None:
    """Mean of what is known; None as soon as one is not."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
