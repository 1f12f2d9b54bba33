"""The section of compliance notes: where numbers do not say what they are taken for."""

from scalestudy.analysis.compliance.base import Finding
from scalestudy.analysis.compliance.look import look
from scalestudy.analysis.findings import Findings
from scalestudy.report.document import Heading, Items, Paragraph, Section, Table

MOST = 40


def compliance_section(findings: Findings) -> Section | None:
    """All findings with their severity and by how much each moves its claim; None without any."""
    found = look(findings)
    if not found:
        return None
    shown = found[:MOST]
    headings = tuple(
        Heading(name, numeric=False) for name in ("Severity", "Finding", "Claimed", "Corrected", "Where")
    )
    rows = tuple(
        (each.severity, each.title, each.claimed or "–", each.corrected or "–", each.where) for each in shown
    )
    words = (
        "Wrong: by the numbers themselves. Doubtful: by a sign, which is no proof. Note: to be known beside"
        " them." + (f" {len(found) - MOST} findings more are left out." if len(found) > MOST else "")
    )
    sentences = tuple(dict.fromkeys(_said(each) for each in shown))
    return Section(
        "Compliance notes", (Table(headings, rows), Paragraph(words), Items(sentences)), name="compliance"
    )


def _said(finding: Finding) -> str:
    return f"{finding.title}: {finding.sentence}"
