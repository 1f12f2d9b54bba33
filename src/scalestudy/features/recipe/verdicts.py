"""Whether each chosen recipe is as good as that of one worker, on seeds that chose nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from scalestudy.analysis.measures import measure_rows
from scalestudy.analysis.runs import group_runs
from scalestudy.analysis.study_table import Row, rows_of
from scalestudy.features.recipe.run_trials import RecipePlan, TunedRate


def rows_by_workers(
    planned: RecipePlan, recipes: Sequence[TunedRate]
) -> dict[int, Row]:
    """The trainings with each chosen setting on new seeds, judged as rows of one study."""
    runs = []
    for recipe in recipes:
        if not recipe.trial:
            continue
        for run in recipe.runs:
            # Settings that differ between numbers of workers are no variants of the study.
            result = run.result.model_copy(update={"swept": {}})
            runs.append(replace(run, result=result))
    measures = measure_rows(group_runs(runs))
    rows = rows_of(measures, planned.request.study.quality_margin)
    return {row.workers: row for row in rows}


def seconds_to_settle(
    rows: Mapping[int, Row],
    recipes: Sequence[TunedRate],
    row: Row,
) -> float | None:
    """Seconds of the trainings that would settle a row, one after another; None if that is unknown."""
    verdict = row.verdict
    if verdict.needed is None or verdict.reference is None:
        return None
    seconds = 0.0
    # A row is compared within seeds, so its reference is trained on the same ones.
    for recipe in recipes:
        if recipe.workers not in (row.workers, verdict.reference.workers):
            continue
        known = []
        for run in recipe.runs:
            if run.wall_seconds is not None:
                known.append(run.wall_seconds)
        if not known:
            return None
        missing = max(0, verdict.needed - rows[recipe.workers].runs)
        seconds += fmean(known) * missing
    return seconds
