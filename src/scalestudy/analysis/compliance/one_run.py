"""Rows of one run: no interval, so that chance cannot be told from gain."""

from scalestudy.analysis.compliance.base import Finding, where
from scalestudy.analysis.findings import Findings


def one_run(findings: Findings) -> list[Finding]:
    """One finding for all rows of a single run."""
    alone = [row for row in findings.rows if row.runs == 1]
    if not alone:
        return []
    runs = [run for row in alone for run in findings.measures.groups[row.key]]
    many = len(alone) > 1
    return [
        Finding(
            "note",
            "One run",
            where(runs),
            f"{len(alone)} of {len(findings.rows)} rows {'are' if many else 'is'} of a single run:"
            f" {'they have' if many else 'it has'} no interval, and nobody knows how far another run would"
            " lie off.",
        )
    ]
