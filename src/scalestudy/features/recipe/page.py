"""Recipes as a table, and as a study file for each number of workers."""

from collections.abc import Mapping, Sequence
from math import ceil, isfinite

from scalestudy.analysis.runs import metric_label, quality_sense
from scalestudy.analysis.study_table import Row
from scalestudy.analysis.wording.larger_batch import quality_holds
from scalestudy.analysis.wording.verdicts import describe_verdict
from scalestudy.config.file import study_toml
from scalestudy.config.metric_senses import gain
from scalestudy.config.toml_text import comment
from scalestudy.features.recipe.run_trials import RecipePlan, TunedRate
from scalestudy.features.recipe.search import RUNGS, RateTrial
from scalestudy.features.recipe.verdicts import seconds_to_settle
from scalestudy.plugins.strategies import traits
from scalestudy.report.document import (
    Document,
    Heading,
    Items,
    Paragraph,
    Table,
    headings_of,
)
from scalestudy.report.number_format import format_number, with_interval
from scalestudy.util.text import count_noun
from scalestudy.util.units import duration

DIGITS = 3
MORE_EPOCHS = 1.5
"""How many times as many epochs are suggested where a recipe learns worse. On digits, so many gave 14 workers the
quality of one, and no other setting did (`benchmarks/recipe_degrees.py`)."""


def recipes_document(
    planned: RecipePlan,
    recipes: Sequence[TunedRate],
    judged: Mapping[int, Row],
) -> Document:
    """Up to which number of workers quality holds, a row for each number, and remarks."""
    results = [recipe.runs[0].result for recipe in recipes]
    headings = (
        Heading("Workers", brief="n"),
        Heading("Global batch", brief="batch"),
        *headings_of("Updates", "Rate", "Setting:"),
        Heading(metric_label(results[0].metric), "on new seeds"),
        Heading("New seeds", brief="seeds"),
        *headings_of(f"Compared with {recipes[0].workers}:"),
    )
    rows = []
    for recipe, result in zip(recipes, results, strict=True):
        peak = format_number(None, 0)
        setting = "every trial diverged"
        if recipe.trial is not None:
            peak = rate(planned, recipe, recipe.trial)
            setting = describe_trial(recipe.trial)
        row_of_table = (
            str(recipe.workers),
            format_number(result.global_batch, 0),
            format_number(result.updates, 0),
            peak,
            setting,
            *quality_of(judged.get(recipe.workers)),
        )
        rows.append(row_of_table)
    verdicts = {row.key: row.verdict for row in judged.values()}
    held = map(Paragraph, quality_holds(verdicts))
    how = (
        f"Every number of workers had {planned.trials} trials, on one seed. Only trainings on new seeds are"
        " reported, with 95 % confidence intervals."
    )
    items = []
    for row in judged.values():
        if row.verdict.kind == "unclear":
            items.append(to_settle(row, judged, recipes))
        if row.verdict.kind == "worse":
            items.append(to_learn_as_well(row, planned.train.epochs, recipes))
    for recipe in recipes:
        for line in remarks(recipe):
            items.append(f"On {recipe.workers}: {line}")
    title = "Learning rate and warm-up for each number of workers"
    return Document(
        planned.request.study.name,
        (*held, Table(headings, tuple(rows)), Paragraph(how), Items(tuple(items))),
        title,
    )


def to_settle(row: Row, judged: Mapping[int, Row], recipes: Sequence[TunedRate]) -> str:
    """How many seeds would settle an unclear verdict, and how long they take."""
    needed = row.verdict.needed
    start = f"On {row.workers}: it is not settled whether it learns as well"
    if needed is None:
        return f"{start}."
    # That number is for a chance of 0.8 without any loss, so every fifth such verdict stays open.
    if needed <= row.runs:
        return (
            f"{start}. {row.runs} seeds usually settle it if nothing is lost; a small loss takes more:"
            f" --settle {2 * row.runs}."
        )
    time = ""
    seconds = seconds_to_settle(judged, recipes, row)
    if seconds:
        time = f", about {duration(seconds)} of trainings one after another"
    return (
        f"{start}. As far as seeds spread, that takes about {needed} seeds of both numbers of workers{time}:"
        f" --settle {needed}."
    )


def to_learn_as_well(row: Row, epochs: int, recipes: Sequence[TunedRate]) -> str:
    """What to try where the best setting learns worse than that of one worker."""
    updates: dict[int, str] = {}
    for recipe in recipes:
        made = recipe.runs[0].result.updates
        updates[recipe.workers] = format_number(made, 0)
    fewest = recipes[0].workers
    others = f"{count_noun(fewest, 'worker')} in {updates[fewest]}"
    more = ceil(MORE_EPOCHS * epochs)
    return (
        f"On {row.workers}: it learns less in {updates[row.workers]} updates than {others}."
        f" Train it longer, for example with train.epochs = {more}, or use fewer workers."
    )


def quality_of(row: Row | None) -> tuple[str, str, str]:
    """Quality with its interval, the number of new seeds, and the verdict on it."""
    if row is None:
        return format_number(None, 0), "", ""
    return (
        with_interval(row.quality, row.digits),
        str(row.runs),
        describe_verdict(row.verdict),
    )


def recipe_file(
    planned: RecipePlan,
    recipe: TunedRate,
    trial: RateTrial,
    row: Row,
) -> str:
    """A study file for one number of workers with the chosen trial, and the reason of each setting."""
    study = planned.request.study
    workers = recipe.workers
    rule, base, warmup, _ = planned.settings(trial, planned.train.epochs)
    changed = {
        "learning_rate": base,
        "learning_rate_scaling": rule,
        "warmup_epochs": warmup,
    }
    # A strategy of one worker would make the study of eight one that cannot run.
    able = []
    for name in study.sweep.strategy:
        if workers <= (traits(name).most_workers or workers):
            able.append(name)
    swept = {
        "workers": (workers,),
        "other": {},
        "strategy": tuple(able) or (planned.strategy,),
    }
    sweep = study.sweep.model_copy(update=swept)
    train = study.train.model_copy(update=changed)
    made = study.model_copy(
        update={
            "name": f"{study.name}-recipe-w{workers}",
            "train": train,
            "sweep": sweep,
        }
    )
    rungs = []
    for scores, share in zip(recipe.scores, RUNGS, strict=True):
        rungs.append(f"{len(scores)} of {100 * share:g} %")
    quality, seeds, verdict = quality_of(row)
    lines = [
        f"A recipe for workers = {workers}, by `scalestudy recipe`. Trials by share of the epochs:"
        f" {', '.join(rungs)}.",
        f"learning_rate and warm-up: {describe_trial(trial)}; at its peak {rate(planned, recipe, trial)}.",
        f"{metric_label(row.metric)} on {seeds} new seeds: {quality}; compared with one worker: {verdict}.",
    ]
    for remark in remarks(recipe):
        lines.append(remark[0].upper() + remark[1:])
    comments: list[str] = []
    for line in lines:
        comments += comment(line)
    return "\n".join(comments) + f"\n\n{study_toml(made)}"


def describe_trial(trial: RateTrial) -> str:
    """`linear, 2 times its rate, warm-up 10 %`."""
    parts = [trial.rule]
    if trial.factor != 1:
        parts.append(f"{trial.factor:.3g} times its rate")
    if trial.warmup:
        parts.append(f"warm-up {100 * trial.warmup:g} %")
    else:
        parts.append("no warm-up")
    return ", ".join(parts)


def rate(planned: RecipePlan, recipe: TunedRate, trial: RateTrial) -> str:
    """Largest learning rate of a trial."""
    peak = trial.peak(recipe.search.kappa)
    return f"{planned.train.learning_rate * peak:.3g}"


def remarks(recipe: TunedRate) -> list[str]:
    """What the published rules reached untuned, and what learned nothing."""
    better = quality_sense(recipe.runs).better or "higher"

    def value(score: float) -> str:
        return format_number(gain(score, better), DIGITS)

    finite = []
    untuned = []
    for trial, score in recipe.scores[0].items():
        if not isfinite(score):
            continue
        finite.append(score)
        # What the rules reach as published, at their own rate.
        if trial.factor == 1:
            untuned.append(f"{describe_trial(trial)} {value(score)}")
    lines = []
    if untuned:
        lines.append(
            f"after {100 * RUNGS[0]:g} % of the epochs, untuned rules reached {'; '.join(untuned)}, the best"
            f" trial {value(max(finite))}."
        )
    diverged = recipe.diverged
    if diverged:
        named = "; ".join(map(describe_trial, diverged))
        lines.append(f"{len(diverged)} learned nothing: {named}.")
    return lines
