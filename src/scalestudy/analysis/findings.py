"""The analysis of a whole study: everything that a report shows, computed once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.analysis.advice import Advice, advise
from scalestudy.analysis.decision import EFFICIENCY_TARGET, Bill, decide
from scalestudy.analysis.measures import Measures, engines_of, measure
from scalestudy.analysis.runs import Key, Planned, Run, grouped
from scalestudy.analysis.scaling.model import Model, models_of
from scalestudy.analysis.scaling.words import model_sentences
from scalestudy.analysis.table import Row, rows_of
from scalestudy.analysis.time_to_target import default_target, times_to_target
from scalestudy.study.quality_margin import QualityMargin


@dataclass(frozen=True)
class Findings:
    """What a study planned and what was found.

    Attributes:
        rows: One per point without its seed.
        measures: The measures that the rows were computed from, with the designs that pool their spread.
        phases: Mean seconds by phase for each row.
        target: Cost efficiency below which workers count as not worth their cost.
        margin: Accepted loss of quality from the study file; None for the default.
        models: How the times of each strategy and variant scale.
        readings: Sentences on how files of numbers from other tools were interpreted.
        folder: The study's folder, for sections that read their own records; None if there are only numbers.
    """

    name: str
    runs: tuple[Run, ...]
    planned: tuple[Planned, ...]
    rows: tuple[Row, ...]
    measures: Measures
    phases: dict[Key, dict[str, float]]
    advice: Advice
    target: float
    margin: QualityMargin | None = None
    models: tuple[Model, ...] = ()
    readings: tuple[str, ...] = ()
    folder: Path | None = None


def analyse(
    name: str, runs: Sequence[Run], planned: Sequence[Planned] = (), target: float = EFFICIENCY_TARGET, *,
    bill: Bill = "worker", margin: QualityMargin | None = None, target_quality: float | None = None,
    rate_rule: str = "", folder: Path | None = None,
) -> Findings:  # fmt: skip
    """Analyse finished runs.

    Args:
        name: Name of the study.
        runs: Its finished runs.
        planned: All points of the study.
        target: Cost efficiency that the recommended row must reach.
        bill: Unit that the site bills.
        margin: Accepted loss of quality.
        target_quality: Quality for which times are computed; by default the quality of the best one-worker
            row minus the margin.
        rate_rule: Rule by which the learning rate grew with the batch; "" if the rate was tuned.
        folder: The study's folder.
    """
    measures = measure(grouped(runs))
    groups = measures.groups
    rows = rows_of(measures, margin)
    # Runs from other tools are shown beside our own, but get no advice: their work may differ.
    ours = [row for row in rows if not row.source] or rows
    decision = decide(ours, measures, target, bill, margin)
    wanted = default_target(ours, margin) if target_quality is None else target_quality
    reached = {} if wanted is None else times_to_target(ours, measures, wanted, bill)
    rows = [replace(row, price=decision.prices.get(row.key), to_target=reached.get(row.key)) for row in rows]
    models, choice = models_of(measures), decision.choice
    limits = next((model for model in models if choice and model.series.key.series == choice.series), None)
    advice = advise(
        [row for row in rows if not row.source] or rows, decision, planned,
        to_target=reached.get(choice) if choice else None,
        rate_rule=rate_rule if len({row.global_batch for row in ours}) > 1 else "",
        limits=model_sentences(limits) if limits else (),
        by_rows=any(run.result.order == "rows" for run in runs), engines=engines_of(groups),
    )  # fmt: skip
    return Findings(
        name=name, runs=tuple(run for members in groups.values() for run in members), planned=tuple(planned),
        rows=tuple(rows), measures=measures,
        phases={key: phase_seconds(members) for key, members in groups.items()}, advice=advice, target=target,
        margin=margin, models=models, folder=folder,
    )  # fmt: skip


def phase_seconds(runs: Sequence[Run]) -> dict[str, float]:
    """Mean seconds by phase over runs, in the order in which the phases were first recorded.

    The rest of the wall time is called "other", so that the sum is the wall time.
    """
    if not runs:
        return {}
    names = dict.fromkeys(name for run in runs for name in run.result.phases)
    means = {name: sum(run.result.phases.get(name, 0.0) for run in runs) / len(runs) for name in names}
    walls = [run.result.wall_seconds for run in runs if run.result.wall_seconds is not None]
    wall = sum(walls) / len(runs) if len(walls) == len(runs) else 0.0
    rest = wall - sum(means.values())
    if rest > 0.005 * wall:
        means["other"] = means.get("other", 0.0) + rest
    return means
