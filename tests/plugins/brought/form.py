"""A report format with one line."""

from scalestudy import Findings, Format, Medium


def one_line(findings: Findings, medium: Medium) -> str:
    return f"{findings.name}: {len(findings.runs)} runs\n"


FORMAT = Format(one_line, "brought.txt")
