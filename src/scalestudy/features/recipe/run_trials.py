"""Run the trials of a recipe as points of an ordinary study, and train the chosen setting on new seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any

from scalestudy.analysis.divergence import failures
from scalestudy.analysis.runs import Run, quality_sense
from scalestudy.analysis.study_runs import runs_of
from scalestudy.app.follow import Listener
from scalestudy.app.plan import Plan, Request, plan_study
from scalestudy.app.run_study import run_points
from scalestudy.config.file import SweepSettings, study_toml
from scalestudy.config.metric_senses import gain
from scalestudy.config.point import Point
from scalestudy.config.settings import ResolvedTrain, TrainSettings
from scalestudy.features.recipe.search import (
    DIVERGED,
    KEPT,
    RUNGS,
    SEEDS,
    RateTrial,
    Search,
    rank,
)
from scalestudy.launch.launcher import Options
from scalestudy.plugins.strategies import of_engine, traits
from scalestudy.util.errors import RunError, UserError

SEARCHED = (
    "train.learning_rate_scaling",
    "train.learning_rate",
    "train.warmup_epochs",
    "train.epochs",
)
"""Keys that a trial sets; those that the study sweeps itself are left out."""
ADAPTIVE = ("adam", "adamw", "lamb")


@dataclass(frozen=True)
class TunedRate:
    """What the search found for one number of workers.

    Attributes:
        trial: The chosen setting; None if every trial diverged.
        scores: For each rung, quality by trial, larger is better.
        runs: Trainings with the chosen setting on the new seeds, or one of any trial.
    """

    workers: int
    search: Search
    trial: RateTrial | None
    scores: tuple[dict[RateTrial, float], ...]
    runs: tuple[Run, ...]

    @property
    def diverged(self) -> list[RateTrial]:
        """Trials that learned nothing, in any rung or on any new seed."""
        rungs = list(self.scores)
        if self.trial:
            # The worst seed counts: a setting that fails on one of three is no recipe.
            rungs.append({self.trial: min(map(score, self.runs))})
        found: dict[RateTrial, None] = {}
        for scores in rungs:
            for trial, value in scores.items():
                if value == DIVERGED:
                    found[trial] = None
        return list(found)


@dataclass(frozen=True)
class RecipePlan:
    """A search for several numbers of workers.

    Attributes:
        request: The study for which recipes are searched; results go below its target, one folder for each
            number of workers.
    """

    request: Request
    workers: tuple[int, ...]
    trials: int
    strategy: str
    train: ResolvedTrain

    def settings(self, trial: RateTrial, epochs: int) -> tuple[str, float, float, int]:
        """Values of the keys `SEARCHED`."""
        rate = float(f"{self.train.learning_rate * trial.factor:.6g}")
        return trial.rule, rate, round(trial.warmup * epochs, 4), epochs

    @property
    def trainings(self) -> float:
        """Cost for one number of workers, in trainings of full length."""
        # Each rung keeps the better half for trainings that are twice as long.
        half = max(KEPT, math.ceil(self.trials / 2))
        last = max(KEPT, math.ceil(self.trials / 4))
        trials = RUNGS[0] * self.trials + RUNGS[1] * half + SEEDS * last
        return trials + SEEDS


def plan_recipe(
    request: Request,
    workers: Sequence[int],
    trials: int,
    strategy: str | None = None,
) -> RecipePlan:
    """Plan a search; by default, one device computes all workers.

    Raises:
        UserError: The strategy belongs to another engine, the study sweeps something else, or it keeps the
            global batch, so that every number of workers makes the same updates.
    """
    study = request.study
    engine = traits(study.sweep.strategy[0]).engine
    names = []
    untimed = []
    for row in of_engine(engine):
        names.append(row.name)
        if not row.timed:
            untimed.append(row.name)
    if not strategy:
        # A strategy without times is the one that computes all workers on one device.
        strategy = untimed[0]
    if strategy not in names:
        action = (
            "Choose one with --strategy; without it, one device computes all workers."
        )
        raise UserError(f"a strategy of {engine}", strategy, action)
    other = sorted(study.sweep.other.keys() - {*SEARCHED})
    if other:
        table, _, _ = other[0].partition(".")
        action = f"Set it under [{table}], and search a recipe for each value."
        raise UserError(
            "a study that sweeps nothing besides strategy, workers and seed",
            other[0],
            action,
        )
    if study.train.batch == "global" and max(workers) > 1:
        action = 'Set batch = "per-worker"; the recipe of one worker holds for all numbers of workers.'
        raise UserError(
            "a global batch that grows with the workers",
            'train.batch = "global"',
            action,
        )
    train = study.defaults.complete_train(study.train)
    # One worker is tuned with equal effort: the others are held against it.
    counts = sorted({1, *workers})
    return RecipePlan(request, tuple(counts), trials, strategy, train)


def search_recipe(
    planned: RecipePlan,
    workers: int,
    listener: Listener | None = None,
    options: Options | None = None,
) -> TunedRate:
    """Search a recipe for one number of workers; trials that have ended before are not run again.

    Raises:
        UserError: A trial is impossible, or it is not known whether a higher quality is better.
        RunError: A trial failed.
    """
    listener = listener or Listener()
    seed = planned.request.study.sweep.seed[0]
    searched = list(range(seed, seed + SEEDS))
    epochs = planned.train.epochs
    lengths = [max(1, round(share * epochs)) for share in RUNGS]
    scores: tuple[dict[RateTrial, float], ...] = tuple([{} for _ in RUNGS])
    # Any trial tells how many reference batches this number of workers computes in a step.
    start = plan_trials(
        planned,
        workers,
        [RateTrial("none", 0.0)],
        searched[:1],
        epochs,
        options,
    )
    search = Search(
        start.points[0].batch_ratio,
        planned.trials,
        planned.train.optimizer in ADAPTIVE,
    )
    rung, trials = search.next_trials(scores)
    while trials:
        # Three seeds of every trial would cost three times as much, and only the last rung decides.
        seeds = searched[:1]
        if rung == len(RUNGS) - 1:
            seeds = searched
        length = lengths[rung]
        listener.note(
            f"Workers: {workers}. Trials of {length} of {epochs} epochs: {len(trials)}."
        )
        ended = _run(planned, workers, trials, seeds, length, listener, options)
        for trial in trials:
            of_seeds = [score(ended[trial, seed]) for seed in seeds]
            scores[rung][trial] = fmean(of_seeds)
        first = next(iter(ended.values()))
        if rung == 0:
            search = replace(search, updates=first.result.updates or math.inf)
        rung, trials = search.next_trials(scores)
    ranked = rank(scores[-1])
    if not ranked:
        return TunedRate(workers, search, None, scores, (first,))
    best = ranked[0]
    chosen = train_choice(planned, workers, best, SEEDS, listener, options)
    return TunedRate(workers, search, best, scores, chosen)


def train_choice(
    planned: RecipePlan,
    workers: int,
    trial: RateTrial,
    seeds: int,
    listener: Listener | None = None,
    options: Options | None = None,
) -> tuple[Run, ...]:
    """Train the chosen setting on this many new seeds, which chose nothing; return all of their runs.

    Trainings that have ended before are not run again.

    Raises:
        RunError: A training failed.
    """
    listener = listener or Listener()
    # Behind the seeds of the search, which favour its choice.
    first = planned.request.study.sweep.seed[0] + SEEDS
    listener.note(f"Workers: {workers}. The best is trained on {seeds} new seeds.")
    new = list(range(first, first + seeds))
    epochs = planned.train.epochs
    ended = _run(planned, workers, [trial], new, epochs, listener, options)
    return tuple(ended.values())


def plan_trials(
    planned: RecipePlan,
    workers: int,
    trials: Sequence[RateTrial],
    seeds: Sequence[int],
    epochs: int,
    options: Options | None = None,
    listener: Listener | None = None,
) -> Plan:
    """The study of these trials, with their points in the order of trials and seeds."""
    study = planned.request.study
    settings = [planned.settings(trial, epochs) for trial in trials]
    swept = {}
    for place, name in enumerate(SEARCHED):
        tried = {setting[place] for setting in settings}
        swept[name] = sorted(tried)
    keys = {name.removeprefix("train.") for name in SEARCHED}
    others = study.train.model_dump(exclude=keys)
    trained = study.model_copy(
        update={
            "name": f"{study.name}-w{workers}",
            "train": TrainSettings.model_validate(others),
            "sweep": SweepSettings(
                strategy=(planned.strategy,),
                workers=(workers,),
                seed=tuple(seeds),
                other=swept,
            ),
        }
    )
    target = planned.request.target / f"w{workers}"
    request = Request(trained, study_toml(trained), planned.request.base, target)
    made = plan_study(request, options, listener=listener)
    points: dict[tuple[Any, ...], Point] = {}
    for point in made.points:
        values = [point.swept[name] for name in SEARCHED]
        points[*values, point.seed] = point
    # The study's grid of these values also has pairs of them that belong to no trial.
    ordered = []
    for setting in settings:
        for seed in seeds:
            ordered.append(points[*setting, seed])
    return made.with_points(ordered, made.overview.over(ordered))


def _run(
    planned: RecipePlan,
    workers: int,
    trials: Sequence[RateTrial],
    seeds: Sequence[int],
    epochs: int,
    listener: Listener,
    options: Options | None,
) -> dict[tuple[RateTrial, int], Run]:
    """Run what is missing of these trials, and return all of their runs."""
    made = plan_trials(planned, workers, trials, seeds, epochs, options, listener)
    names = [point.name for point in made.points]
    overview = made.overview
    if made.todo():
        overview = run_points(made, listener)
    failed = []
    for status in overview.points:
        if status.name in names and status.result is None:
            failed.append(status)
            listener.failed(status)
    if failed:
        seen = f"{failed[0].name}: {failed[0].reason or failed[0].state}"
        action = "Mend the cause, and run the command again: trials that have ended are kept."
        raise RunError("trials that end", seen, action)
    ended: list[Run] = []
    for name in names:
        ended += runs_of(overview.of(name), made.request.target)
    # Points are in the order of trials and seeds, and each has ended in one run.
    return dict(zip(product(trials, seeds), ended, strict=True))


def score(run: Run) -> float:
    """Quality of a trial, larger is better; `DIVERGED` if it learned nothing."""
    sense = quality_sense([run])
    quality = run.result.quality
    if sense.better is None:
        action = f'Add better = {{"{run.result.metric}": "higher"}}, or "lower", to the task file.'
        expected = "a metric of which it is known whether higher or lower is better"
        raise UserError(expected, run.result.metric or "no metric", action)
    if quality is None or not math.isfinite(quality):
        return DIVERGED
    # At chance, diverged or collapsed, as in reports.
    if failures([run], sense):
        return DIVERGED
    return gain(quality, sense.better)
