"""The figures of a study, as Vega-Lite specifications built with Altair."""

from collections.abc import Callable

from scalestudy.analysis.findings import Findings
from scalestudy.report.bars import phases
from scalestudy.report.figure import Figure
from scalestudy.report.lines import efficiency, quality, speedup
from scalestudy.report.losses import loss_by_epoch, loss_by_time

MAKERS: dict[str, Callable[[Findings], Figure | None]] = {
    "speedup": speedup,
    "quality": quality,
    "efficiency": efficiency,
    "phases": phases,
    "loss-by-epoch": loss_by_epoch,
    "loss-by-time": loss_by_time,
}
"""By the names of the figures. None where a study has nothing to draw."""


def figures(findings: Findings) -> list[Figure]:
    """All figures that the finished runs can fill."""
    return [figure for figure in (make(findings) for make in MAKERS.values()) if figure is not None]
