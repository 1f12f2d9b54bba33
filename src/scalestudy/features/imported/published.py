"""The published study that `scalestudy demo` reports on: its table comes with the package."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

from scalestudy.analysis.findings import Findings
from scalestudy.features.imported.gather import import_findings

NAME = "published-unet"
"""Name of the study, of its table and of its page."""


def table() -> Path:
    """Its table: a run per row, with the training time in seconds and the IoU."""
    return Path(str(resources.files("scalestudy.features.imported").joinpath(f"{NAME}.csv")))


def published_findings() -> Findings:
    """The table, analysed as `report --from` does; its source is the first of the readings."""
    findings = import_findings([str(table())])
    return replace(findings, readings=(source(), *findings.readings))


def source() -> str:
    """Where the numbers are from: the comment at the head of the table."""
    lines = table().read_text().splitlines()
    return " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
