"""The analysis of a whole study, from its folder or its runs: everything that a report shows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.analysis.decision import DEFAULTS, Criteria, Decision, decide
from scalestudy.analysis.measures import (
    Measures,
    is_virtual,
    measure_planned,
    measure_rows,
)
from scalestudy.analysis.planned_training import PlannedTraining
from scalestudy.analysis.plausibility import with_doubts
from scalestudy.analysis.price import Bill
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.runs import Key, Planned, Run, group_runs
from scalestudy.analysis.same_model import keep_models_apart
from scalestudy.analysis.scaling_model import Model, model_of, series_of
from scalestudy.analysis.study_runs import planned_of, runs_of
from scalestudy.analysis.study_table import Row, best_single, rows_of
from scalestudy.analysis.switching import Switch, switching_length
from scalestudy.analysis.to_target import useful_speed_ups
from scalestudy.analysis.wording.advice import Advice, advise
from scalestudy.analysis.wording.larger_batch import causes, quality_holds, usefulness
from scalestudy.analysis.wording.rounds import warn_of_rows_apart
from scalestudy.analysis.wording.runs import left_out, quality_warnings
from scalestudy.config.metric_senses import gain
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.config.settings import PlanSettings
from scalestudy.launch.launcher import Overview
from scalestudy.launch.queue.site_profile import billing_unit
from scalestudy.launch.study_status import study_status
from scalestudy.store.study_folder import StudyFolder

_RULES = {"none": "constant", "linear": "linear", "sqrt": "square-root"}
"""Words for the rules by which the learning rate follows the global batch."""


@dataclass(frozen=True)
class Findings:
    """What a study planned and what was found.

    Attributes:
        rows: One per point without its seed.
        measures: The measures that the rows were computed from, with the designs that pool their spread.
        phases: Mean seconds by phase for each row.
        criteria: What the study asks of the choice.
        models: How the times of each strategy and variant scale.
        readings: Sentences on how files of numbers from other tools were interpreted.
        assumptions: Sentences on what is unknown about such numbers.
        folder: The study's folder, for sections that read their own records; None if there are only numbers.
        switch: From which length of training on the decision is another one; None if it is not, if that is
            not certain, or if a plan says which training is meant.
    """

    name: str
    runs: tuple[Run, ...]
    planned: tuple[Planned, ...]
    rows: tuple[Row, ...]
    measures: Measures
    phases: dict[Key, dict[str, float]]
    advice: Advice
    criteria: Criteria
    models: tuple[Model, ...] = ()
    readings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    folder: Path | None = None
    switch: Switch | None = None


def analyse(
    name: str,
    runs: Sequence[Run],
    planned: Sequence[Planned] = (),
    criteria: Criteria = DEFAULTS,
    *,
    target_quality: float | None = None,
    rate_rule: str = "",
    folder: Path | None = None,
) -> Findings:
    """Analyse finished runs.

    Args:
        name: Name of the study.
        runs: Its finished runs.
        planned: All points of the study.
        criteria: What the study asks of the choice.
        target_quality: Quality for the useful speed-up; by default the quality of the best one-worker row
            minus the margin.
        rate_rule: Rule by which the learning rate grew with the batch; "" if the rate was tuned.
        folder: The study's folder.
    """
    runs, other_models = keep_models_apart(runs)
    measures = measure_rows(group_runs(runs), criteria.planned)
    groups, margin = measures.groups, criteria.margin
    rows = rows_of(measures, margin)
    # Runs from other tools are shown beside our own, but get no advice: their work may differ.
    ours = [row for row in rows if not row.source] or rows
    wanted = _target_quality(ours, margin) if target_quality is None else target_quality
    keys = [row.key for row in ours]
    useful = {} if wanted is None else useful_speed_ups(keys, measures, wanted)
    # More samples than on the baseline are significant if the whole interval is above 1.
    samples = {
        key: found.ratio
        for key, found in useful.items()
        if (found.ratio.low or 0.0) > 1
    }

    def decision_for(training: PlannedTraining) -> Decision:
        measured = replace(measures, planned_seconds=measure_planned(groups, training))
        asked = replace(criteria, planned=training)
        found = decide(ours, measured, asked, planned=planned, samples=samples)
        return with_doubts(found, ours, measured, useful)

    decision = decision_for(criteria.planned)
    if other_models and decision.choice:
        decision = replace(
            decision, provisional=(*decision.provisional, "other-models")
        )
    lengths = {run.result.epochs for key in keys for run in groups[key]} - {None}
    switch = None
    # Runs of unequal lengths, and numbers from elsewhere, say nothing about longer trainings.
    if criteria.planned.as_measured and decision.times_are_whole and len(lengths) == 1:
        switch = switching_length(decision, max(filter(None, lengths)), decision_for)
    rows = [
        replace(row, price=decision.prices.get(row.key), useful=useful.get(row.key))
        for row in rows
    ]
    choice = decision.choice
    models = tuple(model_of(series, groups) for series in series_of(measures))
    advice = advise(
        [row for row in rows if not row.source] or rows,
        decision,
        measures,
        planned,
        rate_rule if len({row.global_batch for row in ours}) > 1 else "",
        switch,
        models,
    )
    virtual = {
        key: verdict
        for key, verdict in decision.verdicts.items()
        if is_virtual(groups[key])
    }
    held, why = quality_holds(virtual), causes(decision.verdicts, measures)
    if held and len(virtual) == len(groups):
        advice = replace(advice, headline=held.pop(0))
    apart = warn_of_rows_apart(
        measures.wall_seconds.rounds, measures.wall_seconds.values
    )
    gained = [text for row in rows if row.key == choice and (text := usefulness(row))]
    advice = replace(
        advice,
        sentences=(*gained, *advice.sentences, *held, *why),
        open_questions=(
            *other_models,
            *left_out(runs),
            *quality_warnings(runs),
            *apart,
            *advice.open_questions,
        ),
    )
    return Findings(
        name=name,
        runs=tuple(run for members in groups.values() for run in members),
        planned=tuple(planned),
        rows=tuple(rows),
        measures=measures,
        phases={key: phase_seconds(members) for key, members in groups.items()},
        advice=advice,
        criteria=criteria,
        models=models,
        folder=folder,
        switch=switch,
    )


def _target_quality(rows: Sequence[Row], margin: QualityMargin | None) -> float | None:
    """Quality of the best one-worker row minus the accepted loss; None if unknown."""
    best = best_single(rows)
    if (
        best is None
        or best.quality.value is None
        or len({row.metric for row in rows}) > 1
    ):
        return None
    return best.quality.value - gain(
        accepted_loss(best.quality.value, best.sense, margin),
        best.sense.better or "higher",
    )


def phase_seconds(runs: Sequence[Run]) -> dict[str, float]:
    """Mean seconds by phase over runs, in the order in which the phases were first recorded.

    The rest of the wall time is called "other", so that the sum is the wall time.
    """
    if not runs:
        return {}
    names = dict.fromkeys(name for run in runs for name in run.result.phases)
    means = {
        name: sum(run.result.phases.get(name, 0.0) for run in runs) / len(runs)
        for name in names
    }
    walls = [
        run.result.wall_seconds for run in runs if run.result.wall_seconds is not None
    ]
    wall = sum(walls) / len(runs) if len(walls) == len(runs) else 0.0
    rest = wall - sum(means.values())
    if rest > 0.005 * wall:
        means["other"] = means.get("other", 0.0) + rest
    return means


def read_study(
    folder: StudyFolder,
    *,
    plan: PlanSettings | None = None,
    bill: Bill | None = None,
    target_quality: float | None = None,
    overview: Overview | None = None,
) -> Findings:
    """Read and analyse a study's folder in any state.

    Args:
        folder: The study.
        plan: The training that will be paid for; that of the study if None.
        bill: Unit that the site bills; from the site profile if None.
        target_quality: Quality for the useful speed-up; if None, the best one-worker row's minus the margin.
        overview: State of its points; looked up if None.
    """
    overview, study = overview or study_status(folder), folder.study
    plan = plan or study.plan
    return analyse(
        folder.name,
        [run for status in overview.points for run in runs_of(status, folder.path)],
        [planned_of(status, folder.path) for status in overview.points],
        Criteria(
            plan.efficiency,
            bill or billing_unit(folder) or "worker",
            study.quality_margin,
            planned=PlannedTraining.of(plan),
        ),
        target_quality=target_quality,
        rate_rule=rate_rule(
            study.train.learning_rate_scaling,
            tuned="train.learning_rate" in study.sweep.other,
        ),
        folder=folder.path,
    )


def rate_rule(scaling: str, *, tuned: bool) -> str:
    """Words for the rule by which the learning rate grew with the batch; "" if tuned or unknown."""
    return "" if tuned else _RULES.get(scaling, "")
