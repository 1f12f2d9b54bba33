"""The section on numbers that were measured elsewhere: how files were read, and what they do not say."""

from scalestudy.analysis.findings import Findings
from scalestudy.report.document import Items, Section


def foreign_section(findings: Findings) -> Section | None:
    """How the files were understood; None where all was measured here."""
    if not findings.readings:
        return None
    return Section("How the numbers were read", (Items(findings.readings),), name="readings")
