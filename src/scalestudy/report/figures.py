"""The figures of a study, as Vega-Lite specifications built with Altair."""

from collections.abc import Callable

from scalestudy.analysis.findings import Findings
from scalestudy.report.against_workers import efficiency, quality, speedup
from scalestudy.report.bars import phases
from scalestudy.report.figure import Figure
from scalestudy.report.heat import heat_maps
from scalestudy.report.losses import losses
from scalestudy.report.time_and_cost import time_and_cost

MAKERS: tuple[Callable[[Findings], list[Figure]], ...] = (
    time_and_cost, speedup, quality, efficiency, heat_maps, phases, losses,
)  # fmt: skip


def figures(findings: Findings) -> list[Figure]:
    """All figures that the finished runs can fill, those of a group one after another."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        return [figure for make in MAKERS for figure in make(findings)]
