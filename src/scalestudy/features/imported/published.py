"""The published study that `scalestudy demo` reports on: its table, which is part of the package."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

from scalestudy.analysis.findings import Findings
from scalestudy.features.imported.gather import import_findings

NAME = "published-unet"
"""Name of the study, of its table and of its page."""


def table() -> Path:
    """Return the path of its table: one run per row, with the training time in seconds and the IoU."""
    folder = resources.files("scalestudy.features.imported")
    return Path(str(folder / f"{NAME}.csv"))


def published_findings() -> Findings:
    """Analyse the table as `report --from` does. The first reading names its source."""
    findings = import_findings([str(table())])
    return replace(findings, readings=(source(), *findings.readings))


def source() -> str:
    """Return the source of the numbers: the comment at the head of the table."""
    comment = []
    for line in table().read_text().splitlines():
        if line.startswith("#"):
            comment.append(line.removeprefix("# "))
    return " ".join(comment)
