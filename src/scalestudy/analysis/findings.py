"""A whole study analysed: everything that a report says, computed once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.analysis.advice import Advice, advise
from scalestudy.analysis.kept import Kept
from scalestudy.analysis.losses import phase_seconds
from scalestudy.analysis.measures import Measures, measure
from scalestudy.analysis.runs import Key, Planned, Run, grouped
from scalestudy.analysis.scaling.model import Model, models_of
from scalestudy.analysis.table import Row, rows_of
from scalestudy.study.estimate_record import EstimateRecord

EFFICIENCY_TARGET = 0.7


@dataclass(frozen=True)
class Findings:
    """What a study asked for and what was found."""

    name: str
    runs: tuple[Run, ...]
    planned: tuple[Planned, ...]
    rows: tuple[Row, ...]
    measures: Measures
    """What the rows were computed from, and over which of them spreads were pooled."""
    phases: dict[Key, dict[str, float]]
    """Mean seconds by phase for each row."""
    advice: Advice
    target: float
    """Efficiency below which workers count as not worth their cost."""
    estimate: EstimateRecord | None = None
    """What was foreseen of larger runs; None where nobody has asked."""
    readings: tuple[str, ...] = ()
    """How files of numbers that were measured elsewhere were understood, in sentences."""
    models: tuple[Model, ...] = ()
    """How the times of each strategy and variant scale."""
    diagnosis: Kept | None = None
    """Why a point's efficiency is below 1, where that was measured."""
    folder: Path | None = None
    """The study's folder, for sections that have records of their own there; None of numbers alone."""


def analyse(
    name: str, runs: Sequence[Run], planned: Sequence[Planned] = (), target: float = EFFICIENCY_TARGET
) -> Findings:
    """Analyse finished runs; `planned` says what else the study asked for."""
    measures = measure(grouped(runs))
    groups = measures.groups
    rows = tuple(rows_of(measures))
    models = models_of(measures)
    return Findings(
        name=name,
        runs=tuple(run for members in groups.values() for run in members),
        planned=tuple(planned),
        rows=rows,
        measures=measures,
        phases={key: phase_seconds(members) for key, members in groups.items()},
        # Beside runs of ours, those of others are shown and not advised on: their work may be another.
        advice=advise([row for row in rows if not row.source] or rows, measures, planned, models, target),
        target=target,
        models=models,
    )
