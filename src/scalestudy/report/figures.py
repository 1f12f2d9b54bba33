"""The figures of a study, as Vega-Lite specifications built with Altair."""

from collections.abc import Callable, Sequence

from scalestudy.analysis.findings import Findings
from scalestudy.report.against_workers import efficiency, quality, speedup
from scalestudy.report.bars import phases
from scalestudy.report.document import Drawing
from scalestudy.report.figure import Figure
from scalestudy.report.losses import losses
from scalestudy.report.time_and_cost import time_and_cost

MAKERS: tuple[Callable[[Findings], list[Figure]], ...] = (
    time_and_cost, speedup, quality, efficiency, phases, losses,
)  # fmt: skip


def figures(findings: Findings) -> list[Figure]:
    """All figures for which the finished runs have data, those of a group one after another."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        return [figure for make in MAKERS for figure in make(findings)]


def places(made: Sequence[Figure]) -> list[Drawing]:
    """Group the figures by place, each with the others that can be selected there."""
    groups: dict[str, list[Figure]] = {}
    for figure in made:
        groups.setdefault(figure.group or figure.name, []).append(figure)
    return [Drawing(first, tuple(others)) for first, *others in groups.values()]
