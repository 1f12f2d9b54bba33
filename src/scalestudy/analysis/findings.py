"""The analysis of a whole study: everything that a report shows, computed once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.analysis.advice import Advice, advise
from scalestudy.analysis.decision import EFFICIENCY_TARGET, decide
from scalestudy.analysis.larger_batch import causes, quality_holds, usefulness
from scalestudy.analysis.measures import Measures, engines_of, is_virtual, measure
from scalestudy.analysis.price import Bill
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.runs import Key, Planned, Run, grouped
from scalestudy.analysis.scaling.model import Model, models_of
from scalestudy.analysis.table import Row, best_single, rows_of
from scalestudy.analysis.time_to_target import times_to_target
from scalestudy.analysis.useful import useful_speed_ups
from scalestudy.config.file import INDIFFERENCE_ZONE
from scalestudy.config.metrics import gain
from scalestudy.config.moving_statistics import warning_of
from scalestudy.config.quality_margin import QualityMargin


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
    name: str,
    runs: Sequence[Run],
    planned: Sequence[Planned] = (),
    target: float = EFFICIENCY_TARGET,
    *,
    bill: Bill = "worker",
    margin: QualityMargin | None = None,
    target_quality: float | None = None,
    rate_rule: str = "",
    folder: Path | None = None,
    zone: float = INDIFFERENCE_ZONE,
) -> Findings:
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
        zone: Half of the width of the indifference zone about the target.
    """
    measures = measure(grouped(runs))
    groups = measures.groups
    rows = rows_of(measures, margin)
    # Runs from other tools are shown beside our own, but get no advice: their work may differ.
    ours = [row for row in rows if not row.source] or rows
    wanted = _target_quality(ours, margin) if target_quality is None else target_quality
    keys = [row.key for row in ours]
    reached = {} if wanted is None else times_to_target(keys, measures, wanted, bill)
    useful = {} if wanted is None else useful_speed_ups(keys, measures, wanted)
    samples = {key: found.ratio for key, found in useful.items() if found.costs_samples}
    decision = decide(ours, measures, target, bill, margin, zone=zone, planned=planned, samples=samples)
    rows = [
        replace(
            row,
            price=decision.prices.get(row.key),
            to_target=reached.get(row.key),
            useful=useful.get(row.key),
        )
        for row in rows
    ]
    models, choice = models_of(measures), decision.choice
    advice = advise(
        [row for row in rows if not row.source] or rows,
        decision,
        planned,
        to_target=reached.get(choice) if choice else None,
        rate_rule=rate_rule if len({row.global_batch for row in ours}) > 1 else "",
        by_rows=any(run.result.order == "rows" for run in runs),
        engines=engines_of(groups),
        warnings=_warnings(runs),
    )
    virtual = {key: verdict for key, verdict in decision.verdicts.items() if is_virtual(groups[key])}
    held, why = quality_holds(virtual), causes(decision.verdicts, measures)
    if held and len(virtual) == len(groups):
        advice = replace(advice, headline=held.pop(0))
    gained = [text for row in rows if row.key == choice and (text := usefulness(row))]
    advice = replace(advice, sentences=(*gained, *advice.sentences, *held, *why))
    return Findings(
        name=name,
        runs=tuple(run for members in groups.values() for run in members),
        planned=tuple(planned),
        rows=tuple(rows),
        measures=measures,
        phases={key: phase_seconds(members) for key, members in groups.items()},
        advice=advice,
        target=target,
        margin=margin,
        models=models,
        folder=folder,
    )


def _target_quality(rows: Sequence[Row], margin: QualityMargin | None) -> float | None:
    """Quality of the best one-worker row minus the accepted loss; None if unknown."""
    best = best_single(rows)
    if best is None or best.quality.value is None or len({row.metric for row in rows}) > 1:
        return None
    return best.quality.value - gain(
        accepted_loss(best.quality.value, best.sense, margin), best.sense.better or "higher"
    )


def _warnings(runs: Sequence[Run]) -> list[str]:
    """One sentence for the run whose moving statistics hold most of their initial values, if too much."""
    held = [run.result for run in runs if run.result.initial_statistics is not None]
    if not held:
        return []
    most = max(held, key=lambda result: result.initial_statistics or 0.0)
    warning = warning_of(most.initial_statistics, most.updates)
    remedy = (
        "Call torch.optim.swa_utils.update_bn before evaluating."
        if most.by_script
        else 'Set batch_norm = "fresh" under [train].'
    )
    return [f"Quality says little about {most.name}. {warning}. {remedy}"] if warning else []


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
