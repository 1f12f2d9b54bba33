"""Search a learning rate and a warm-up: trials are points of an ordinary study for each number of workers.

Successive halving in three rungs (Jamieson and Talwalkar, "Non-stochastic best arm identification and
hyperparameter optimization", AISTATS 2016): many short trainings, the better half for twice as long, and so
on. The first rung begins with each rule for large batches at its published rate, with and without warm-up,
and goes on around the best until its neighbours were tried, so that the best never lies on the edge. The last
rung trains three seeds, since one may favour a setting; its best is trained on three others, which alone are
reported, since the seeds of the choice favour it. Every number of workers gets as many trials, one worker
included: otherwise its rate would be tuned better than the others' (Shallue et al., JMLR 20, 2019).
Everything follows from the results, so a search can be continued.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
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
from scalestudy.launch.launcher import Options
from scalestudy.plugins.strategies import of_engine, traits
from scalestudy.training.rates import peak_rate
from scalestudy.util.errors import RunError, UserError

RULES = ("linear", "sqrt", "none")
WARMUPS = (0.1, 0.0)
RUNGS = (0.25, 0.5, 1.0)
"""Shares of the epochs."""
KEPT = 2
"""Fewest trials in a rung."""
SEEDS = 3
"""Seeds of the last rung, and new ones on which its best trial is reported."""
DIVERGED = -math.inf
SEARCHED = (
    "train.learning_rate_scaling",
    "train.learning_rate",
    "train.warmup_epochs",
    "train.epochs",
)
"""Keys that a trial sets; those that the study sweeps itself are left out."""
ADAPTIVE = ("adam", "adamw", "lamb")


@dataclass(frozen=True)
class RateTrial:
    """A setting: the rule for large batches, the share of epochs in warm-up, and a factor of the rate."""

    rule: str
    warmup: float
    factor: float = 1.0

    def peak(self, kappa: float) -> float:
        """Largest learning rate, as a multiple of the study's, for `kappa` reference batches."""
        return peak_rate(self.factor, kappa, self.rule)


Scores = Sequence[Mapping[RateTrial, float]]
"""For each rung, quality by trial, larger is better; `DIVERGED` for a trial that learned nothing."""


@dataclass(frozen=True)
class Search:
    """The search for one number of workers.

    Attributes:
        kappa: Global batch divided by the reference batch.
        trials: Number of trials in the first rung, 2 or more.
        adapts: Whether the rule "sqrt" changes more than the rate, as it does with Adam.
        updates: Updates of a trial in the first rung, known once one has ended.
    """

    kappa: float
    trials: int
    adapts: bool = False
    updates: float = math.inf

    def next_trials(self, scores: Scores) -> tuple[int, list[RateTrial]]:
        """Rung and trials to run next; no trials once the last rung is complete."""
        left = self.trials - len(scores[0])
        if left > 0:
            found = next(self._candidates(scores[0]), [])
            if found:
                return 0, found[:left]
        for rung in (1, 2):
            missing = []
            for trial in self._kept(rung, scores):
                if trial not in scores[rung]:
                    missing.append(trial)
            if missing:
                return rung, missing
        return 2, []

    def _kept(self, rung: int, scores: Scores) -> list[RateTrial]:
        kept = max(KEPT, math.ceil(self.trials / 2**rung))
        return rank(scores[rung - 1])[:kept]

    def _candidates(
        self, scores: Mapping[RateTrial, float]
    ) -> Iterator[list[RateTrial]]:
        """Untried rules; then around the best: rates a factor of 2 away, other warm-ups, closer rates."""
        groups = []
        for warmup in WARMUPS:
            groups.append([RateTrial(rule, warmup) for rule in RULES])
        for trial in rank(scores) or list(scores):
            warmups = (*WARMUPS, min(3 * trial.warmup, 1.0))
            groups.append(_with_rates(trial, 2, 1 / 2))
            groups.append([replace(trial, warmup=warmup) for warmup in warmups])
            groups.append(_with_rates(trial, math.sqrt(2), math.sqrt(1 / 2)))
        for group in groups:
            untried: list[RateTrial] = []
            for trial in group:
                if not self._is_among(trial, [*scores, *untried]):
                    untried.append(trial)
            if untried:
                yield untried

    def _is_among(self, trial: RateTrial, others: Sequence[RateTrial]) -> bool:
        """Whether a trial is one of these, or trains in the same way but for a few per cent of the rate."""
        alike = max(WARMUPS) * self.updates < 1.5  # a warm-up of one update is none
        rules_matter = self.adapts and self.kappa != 1
        for other in others:
            if not alike and trial.warmup != other.warmup:
                continue
            rates = trial.peak(self.kappa) / other.peak(self.kappa)
            near = abs(math.log2(rates)) < 1 / 8
            if not near:
                continue
            # With Adam, "sqrt" scales its other settings, too: an equal rate is another training.
            if rules_matter and (trial.rule == "sqrt") != (other.rule == "sqrt"):
                continue
            return True
        return False


def _with_rates(trial: RateTrial, *steps: float) -> list[RateTrial]:
    return [replace(trial, factor=trial.factor * step) for step in steps]


def rank(scores: Mapping[RateTrial, float]) -> list[RateTrial]:
    """Trials that learned, the best first."""
    learned = [trial for trial, score in scores.items() if score > DIVERGED]
    return sorted(learned, key=lambda trial: -scores[trial])


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
    if not strategy:
        # A strategy without times is the one that computes all workers on one device.
        strategy = next(row.name for row in of_engine(engine) if not row.timed)
    if strategy not in {row.name for row in of_engine(engine)}:
        action = (
            "Choose one with --strategy; without it, one device computes all workers."
        )
        raise UserError(f"a strategy of {engine}", strategy, action)
    if other := sorted(study.sweep.other.keys() - {*SEARCHED}):
        action = f"Set it under [{other[0].split('.')[0]}], and search a recipe for each value."
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
    return RecipePlan(request, tuple(sorted({1, *workers})), trials, strategy, train)


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
    scores: tuple[dict[RateTrial, float], ...] = tuple({} for _ in RUNGS)
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
        seeds = searched if rung == len(RUNGS) - 1 else searched[:1]
        listener.note(
            f"Workers: {workers}. Trials of {lengths[rung]} of {epochs} epochs: {len(trials)}."
        )
        ended = _run(planned, workers, trials, seeds, lengths[rung], listener, options)
        for trial in trials:
            of_seeds = [score(ended[trial, seed]) for seed in seeds]
            scores[rung][trial] = fmean(of_seeds)
        first = next(iter(ended.values()))
        if rung == 0:
            search = replace(search, updates=first.result.updates or math.inf)
        rung, trials = search.next_trials(scores)
    best = next(iter(rank(scores[-1])), None)
    if best is None:
        return TunedRate(workers, search, None, scores, (first,))
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
        swept[name] = sorted({values[place] for values in settings})
    others = study.train.model_dump(
        exclude={name.removeprefix("train.") for name in SEARCHED}
    )
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
    overview = run_points(made, listener) if made.todo() else made.overview
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
    sense, quality = quality_sense([run]), run.result.quality
    if sense.better is None:
        action = f'Add better = {{"{run.result.metric}": "higher"}}, or "lower", to the task file.'
        expected = "a metric of which it is known whether higher or lower is better"
        raise UserError(expected, run.result.metric or "no metric", action)
    if quality is None or not math.isfinite(quality) or failures([run], sense):
        return DIVERGED
    return gain(quality, sense.better)
