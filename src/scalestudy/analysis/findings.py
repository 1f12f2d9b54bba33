"""The analysis of a whole study, from its folder or its runs: everything that a report shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from scalestudy.analysis.decision import Criteria, Decision, decide
from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.measures import (
    Measures,
    measure_planned,
    measure_rows,
)
from scalestudy.analysis.planned_training import PlannedTraining
from scalestudy.analysis.plausibility import with_doubts
from scalestudy.analysis.price import Bill
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.runs import Key, Planned, Run, RunsByRow, group_runs
from scalestudy.analysis.same_model import keep_models_apart
from scalestudy.analysis.scaling_model import Model, model_of, series_of
from scalestudy.analysis.study_runs import planned_of, runs_of
from scalestudy.analysis.study_table import Row, best_single, rows_of
from scalestudy.analysis.switching import Switch, switching_length
from scalestudy.analysis.to_target import Useful, useful_speed_ups
from scalestudy.analysis.wording.advice import Advice, advise
from scalestudy.analysis.wording.rounds import warn_of_rows_apart
from scalestudy.analysis.wording.runs import left_out, quality_warnings
from scalestudy.analysis.wording.same_model import describe_unlike
from scalestudy.config.metric_senses import gain
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.config.settings import PlanSettings
from scalestudy.launch.launcher import Overview
from scalestudy.launch.queue.site_profile import billing_unit
from scalestudy.launch.study_status import study_status
from scalestudy.store.study_folder import StudyFolder


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
    criteria: Criteria | None = None,
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
        criteria: What the study asks of the choice; the defaults of `Criteria` if None.
        target_quality: Quality for the useful speed-up; by default the quality of the best one-worker row
            minus the margin.
        rate_rule: Rule by which the learning rate grew with the batch; "" if the rate was tuned.
        folder: The study's folder.
    """
    criteria = criteria or Criteria()
    runs, other_models = keep_models_apart(runs)
    measures = measure_rows(group_runs(runs), criteria.planned)
    groups = measures.groups
    rows = rows_of(measures, criteria.margin)
    # Runs from other tools are shown beside our own, but get no advice: their work may differ.
    ours = _own_rows(rows)
    wanted = target_quality
    if wanted is None:
        wanted = _target_quality(ours, criteria.margin)
    useful: dict[Key, Useful] = {}
    if wanted is not None:
        keys = [row.key for row in ours]
        useful = useful_speed_ups(keys, measures, wanted)

    def decision_for(training: PlannedTraining) -> Decision:
        measured = replace(measures, planned_seconds=measure_planned(groups, training))
        asked = replace(criteria, planned=training)
        samples = _significantly_more(useful)
        found = decide(ours, measured, asked, planned=planned, samples=samples)
        return with_doubts(found, ours, measured, useful)

    decision = decision_for(criteria.planned)
    # Rows of two models answer no question about workers.
    if other_models and decision.choice:
        reasons = (*decision.provisional, "other-models")
        decision = replace(decision, provisional=reasons)
    switch = None
    epochs = _common_epochs(ours, groups)
    # Runs of unequal lengths, and numbers from elsewhere, say nothing about longer trainings.
    if criteria.planned.as_measured and decision.times_are_whole and epochs:
        switch = switching_length(decision, epochs, decision_for)
    priced = []
    for row in rows:
        price = decision.prices.get(row.key)
        found = useful.get(row.key)
        priced.append(replace(row, price=price, useful=found))
    models = [model_of(series, groups) for series in series_of(measures)]
    batches = {row.global_batch for row in ours}
    if len(batches) < 2:
        # With one global batch, no rate had to follow it.
        rate_rule = ""
    advice = advise(
        _own_rows(priced),
        decision,
        measures,
        planned,
        rate_rule=rate_rule,
        switch=switch,
        models=models,
        # What was left out or stands apart comes before what would refine the answer.
        about_runs=(
            *map(describe_unlike, other_models),
            *left_out(runs),
            *quality_warnings(runs),
            *warn_of_rows_apart(
                measures.wall_seconds.rounds,
                measures.wall_seconds.values,
            ),
        ),
    )
    phases = {}
    for key, members in groups.items():
        phases[key] = phase_seconds(members)
    return Findings(
        name=name,
        runs=tuple(chain.from_iterable(groups.values())),
        planned=tuple(planned),
        rows=tuple(priced),
        measures=measures,
        phases=phases,
        advice=advice,
        criteria=criteria,
        models=tuple(models),
        folder=folder,
        switch=switch,
    )


def _own_rows(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows without those from other tools; all of them, if a table has no others."""
    return [row for row in rows if not row.source] or rows


def _significantly_more(useful: Mapping[Key, Useful]) -> dict[Key, Estimate]:
    """Rows that need more samples than their baseline, with the whole interval above 1."""
    more = {}
    for key, found in useful.items():
        if (found.ratio.low or 0.0) > 1:
            more[key] = found.ratio
    return more


def _common_epochs(rows: Sequence[Row], groups: RunsByRow) -> int | None:
    """Epochs of all runs of these rows that recorded them; None if they differ."""
    lengths = set()
    for row in rows:
        for run in groups[row.key]:
            if run.result.epochs is not None:
                lengths.add(run.result.epochs)
    if len(lengths) != 1:
        return None
    return lengths.pop()


def _target_quality(rows: Sequence[Row], margin: QualityMargin | None) -> float | None:
    """Quality of the best one-worker row minus the accepted loss; None if unknown."""
    best = best_single(rows)
    if best is None or best.quality.value is None:
        return None
    metrics = {row.metric for row in rows}
    if len(metrics) > 1:
        return None
    loss = accepted_loss(best.quality.value, best.sense, margin)
    return best.quality.value - gain(loss, best.sense.better or "higher")


def phase_seconds(runs: Sequence[Run]) -> dict[str, float]:
    """Mean seconds by phase over runs, in the order in which the phases were first recorded.

    The rest of the wall time is called "other", so that the sum is the wall time.
    """
    if not runs:
        return {}
    names: dict[str, None] = {}
    walls = []
    for run in runs:
        names |= dict.fromkeys(run.result.phases)
        if run.result.wall_seconds is not None:
            walls.append(run.result.wall_seconds)
    means: dict[str, float] = {}
    for name in names:
        # A phase that a run lacks took it no time.
        seconds = [run.result.phases.get(name, 0.0) for run in runs]
        means[name] = sum(seconds) / len(runs)
    wall = 0.0
    if len(walls) == len(runs):
        wall = sum(walls) / len(runs)
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
    runs: list[Run] = []
    for status in overview.points:
        runs += runs_of(status, folder.path)
    return analyse(
        folder.name,
        runs,
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
    """The rule by which the learning rate grew with the batch; "" if it was tuned."""
    if tuned:
        return ""
    return scaling
