"""Samples that are never trained on: the remainder of an epoch is dropped, the more the larger the batch."""

from scalestudy.analysis.compliance.base import Finding, where
from scalestudy.analysis.compliance.work import work_of
from scalestudy.analysis.findings import Findings

LEAST = 0.001
"""Share of the set below which a remainder is no matter."""


def remainder(findings: Findings) -> list[Finding]:
    """One finding for each row whose steps leave samples out."""
    found = []
    for row in findings.rows:
        runs = findings.measures.groups[row.key]
        work = work_of(runs[0])
        if work is None or not work.known or work.share > 1 - LEAST:
            continue
        left = work.samples - work.processed
        found.append(
            Finding(
                "wrong",
                "Remainder dropped",
                where(runs),
                f"{row.key.label}: an epoch processes {work.processed:,} of {work.samples:,} samples;"
                f" {left:,} ({100 * left / work.samples:.1f} %) are never trained on in it.",
                f"{work.samples:,} samples an epoch",
                f"{work.processed:,}",
            )
        )
    return found
