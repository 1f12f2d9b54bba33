"""A whole study analysed: everything that a report says, computed once."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.advice import Advice, advise
from scalestudy.analysis.amdahl import AmdahlFit, fit_amdahl
from scalestudy.analysis.kept import Kept
from scalestudy.analysis.losses import phase_seconds
from scalestudy.analysis.measures import Measures, measure
from scalestudy.analysis.runs import Key, Planned, Run, grouped
from scalestudy.analysis.table import Row, rows_of

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
    fits: dict[Key, AmdahlFit]
    """Amdahl fits; each key is the series' row with the fewest workers."""
    phases: dict[Key, dict[str, float]]
    """Mean seconds by phase for each row."""
    advice: Advice
    target: float
    """Efficiency below which workers count as not worth their cost."""
    diagnosis: Kept | None = None
    """Why a point's efficiency is below 1, where that was measured."""


def analyse(
    name: str, runs: Sequence[Run], planned: Sequence[Planned] = (), target: float = EFFICIENCY_TARGET
) -> Findings:
    """Analyse finished runs; `planned` says what else the study asked for."""
    measures = measure(grouped(runs))
    groups = measures.groups
    rows = tuple(rows_of(measures))
    fits = fit_series(rows, runs)
    return Findings(
        name=name,
        runs=tuple(run for members in groups.values() for run in members),
        planned=tuple(planned),
        rows=rows,
        measures=measures,
        fits=fits,
        phases={key: phase_seconds(members) for key, members in groups.items()},
        advice=advise(rows, measures, planned, fits, target),
        target=target,
    )


def fit_series(rows: Sequence[Row], runs: Sequence[Run]) -> dict[Key, AmdahlFit]:
    """Amdahl's law for every strategy and variant whose training times can be compared."""
    groups = grouped(runs)
    series: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.speed.training.value is not None and row.samples_processed is not None:
            series.setdefault((row.strategy, row.key.variant), []).append(row)
    fits = {}
    for members in series.values():
        pairs = [(row.workers, run.result.training_seconds) for row in members for run in groups[row.key]]
        fit = fit_amdahl([count for count, _ in pairs], [seconds for _, seconds in pairs])
        if fit is not None:
            fits[members[0].key] = fit
    return fits
