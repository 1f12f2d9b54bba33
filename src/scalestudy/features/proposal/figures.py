"""The report's figures that a panel may ask for, by their names."""

from collections.abc import Callable

from scalestudy.analysis.findings import Findings
from scalestudy.report.against_workers import efficiency, quality, speedup
from scalestudy.report.bars import phases
from scalestudy.report.figure import Figure
from scalestudy.report.losses import losses
from scalestudy.report.time_and_cost import time_and_cost

MAKERS: dict[str, Callable[[Findings], list[Figure]]] = {
    "speedup": speedup, "speedup-training": speedup, "speedup-wall": speedup, "efficiency": efficiency,
    "cost-efficiency": efficiency, "time-and-cost": time_and_cost, "quality": quality,
    "phases": phases, "loss-by-epoch": losses, "loss-by-updates": losses, "loss-by-samples": losses,
    "loss-by-time": losses,
}  # fmt: skip
"""Each makes all figures of its group."""


def drawn(name: str, findings: Findings) -> Figure | None:
    """The figure of this name; None where there is nothing to draw.

    Raises:
        KeyError: There is no such figure.
    """
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):  # a chart is held against its schema by tests, which takes longer than to make it
        return next((figure for figure in MAKERS[name](findings) if figure.name == name), None)
