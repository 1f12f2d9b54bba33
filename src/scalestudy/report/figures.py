"""The figures of a study, as Vega-Lite specifications built with Altair."""

from scalestudy.analysis.findings import Findings
from scalestudy.report.bars import phases
from scalestudy.report.figure import Figure
from scalestudy.report.lines import efficiency, quality, speedup
from scalestudy.report.losses import loss_by_epoch, loss_by_time


def figures(findings: Findings) -> list[Figure]:
    """All figures that the finished runs can fill."""
    makers = (speedup, quality, efficiency, phases, loss_by_epoch, loss_by_time)
    return [figure for figure in (make(findings) for make in makers) if figure is not None]
