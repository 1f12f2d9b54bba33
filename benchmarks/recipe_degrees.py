"""Where a recipe misses the quality of one worker: which degree of freedom does its search lack?

    python benchmarks/recipe_degrees.py FOLDER --data DATA [--case mnist|nuclei] [--workers N]
        [--trials N] [--seeds N] [--only CHANGE ...]

FOLDER is that of `recipes.py`, whose searches are used, and continued if they have not ended; everything is an
ordinary study, so an interrupted benchmark continues where it was.

Each change is one setting that the search leaves alone, at rates around the recipe's, until the best does not lie on
the edge. The seeds of the search choose the rate; new seeds, which chose nothing, show what it is worth. A row is
compared, paired by seed, with one worker by its own recipe; and then with one worker that got the same change and the
same choice of rates, since what helps many workers may help one as well. Intervals are those of a single row: of
twenty differences that are none, one may seem to be one.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy import stats

import scalestudy
from recipes import CASES, Case, digits, study_file
from scalestudy.analysis.runs import Run
from scalestudy.app.plan import request_of
from scalestudy.features.recipe.run_trials import (
    RecipePlan,
    TunedRate,
    plan_recipe,
    score,
    search_recipe,
    train_choice,
)
from scalestudy.features.recipe.search import SEEDS

FACTORS = (0.5, 1.0, 2.0)
"""First rates of a change, relative to the recipe's."""


@dataclass(frozen=True)
class Change:
    """One setting that the search leaves alone.

    Attributes:
        train: Keys under [train].
        epochs: Epochs of the training, relative to the study's.
        warmup: Share of the epochs in warm-up; that of the recipe if None.
        keeps_samples: Whether the averages of Adam span as many samples as with one worker: the rule "sqrt", at
            the peak rate of the recipe.
    """

    train: dict[str, object] = field(default_factory=dict)
    epochs: float = 1.0
    warmup: float | None = None
    keeps_samples: bool = False


CHANGES = {
    "cosine decay": Change({"schedule": "cosine"}),
    "linear decay": Change({"schedule": "linear"}),
    "betas by samples": Change(keeps_samples=True),
    "weight decay": Change({"optimizer": "adamw"}),
    "lamb": Change({"optimizer": "lamb"}),
    "clipped to 1": Change({"clip_norm": 1.0}),
    "no warm-up": Change(warmup=0.0),
    "warm-up of 50 %": Change(warmup=0.5),
    "1.5 x epochs": Change(epochs=1.5),
    "2 x epochs": Change(epochs=2.0),
}


@dataclass(frozen=True)
class Searched:
    """The recipe of a number of workers, with the files of its case."""

    case: Case
    folder: Path
    planned: RecipePlan
    recipe: TunedRate

    def train(self, change: Change, factor: float) -> dict[str, object]:
        """The keys of [train] for a change, at `factor` times the peak rate of the recipe."""
        recipe, trial = self.recipe, self.recipe.trial
        if trial is None:
            raise SystemExit(f"{recipe.workers} workers: every trial diverged")
        epochs = round(self.case.epochs * change.epochs)
        warmup = trial.warmup if change.warmup is None else change.warmup
        rule = "sqrt" if change.keeps_samples else trial.rule
        unscaled = replace(trial, rule=rule, factor=1.0)
        peak = factor * trial.peak(recipe.search.kappa)
        rate = self.planned.train.learning_rate * peak
        scaled = rate / unscaled.peak(recipe.search.kappa)
        return {
            "epochs": epochs,
            "learning_rate_scaling": rule,
            "learning_rate": float(f"{scaled:.6g}"),
            "warmup_epochs": round(warmup * epochs, 4),
        } | change.train

    def trained(
        self, name: str, train: dict[str, object], seeds: Sequence[int]
    ) -> list[Run]:
        """The runs of a setting on these seeds, in their order."""
        sweep: dict[str, object] = {
            "strategy": ["virtual"],
            "workers": [self.recipe.workers],
            "seed": list(seeds),
        }
        file = self.folder / f"{name}-w{self.recipe.workers}.toml"
        study = scalestudy.run(str(study_file(file, self.case, train, sweep)))
        return sorted(study.findings.runs, key=lambda run: run.result.seed or 0)


def chosen(searched: Searched, seeds: int) -> np.ndarray:
    """Qualities of the recipe itself on new seeds, shape (seeds,)."""
    assert searched.recipe.trial is not None
    runs = train_choice(
        searched.planned,
        searched.recipe.workers,
        searched.recipe.trial,
        seeds,
    )
    return np.array([run.result.quality for run in runs])


def changed(searched: Searched, name: str, seeds: int) -> tuple[float, np.ndarray]:
    """The best factor of the rate for a change, and its qualities on new seeds, shape (seeds,)."""
    change = CHANGES[name]
    stem = "-".join(name.replace("%", "").replace(".", "").split())
    seen: dict[float, float] = {}
    missing = [*FACTORS]
    while missing:
        for factor in missing:
            train = searched.train(change, factor)
            runs = searched.trained(
                _file_name(stem, factor),
                train,
                range(SEEDS),
            )
            seen[factor] = fmean(score(run) for run in runs)
        best = max(seen, key=lambda factor: seen[factor])
        # The best must not lie on the edge.
        missing = [factor for factor in (best / 2, best * 2) if factor not in seen]
    train = searched.train(change, best)
    new = range(SEEDS, SEEDS + seeds)
    runs = searched.trained(f"{_file_name(stem, best)}-new", train, new)
    return best, np.array([run.result.quality for run in runs])


def _file_name(stem: str, factor: float) -> str:
    return f"{stem}-rate{factor:g}".replace(".", "")


def difference(qualities: np.ndarray, reference: np.ndarray) -> str:
    """The mean difference of two rows with its interval at 95 %, paired by seed."""
    test = stats.ttest_1samp(qualities - reference, 0.0)
    low, high = test.confidence_interval(0.95)
    return f"{np.mean(qualities - reference):+.4f} ({low:+.4f} to {high:+.4f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--case", choices=CASES, default="mnist")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=12, help="new seeds of a row")
    parser.add_argument("--only", nargs="+", choices=CHANGES, default=list(CHANGES))
    options = parser.parse_args()
    case, folder = CASES[options.case], options.folder / options.case
    folder.mkdir(parents=True, exist_ok=True)
    if options.case == "nuclei":
        case = replace(case, source=str((options.data / case.source).absolute()))
    elif not (folder / case.source).exists():
        digits(options.data, folder / case.source)
    sweep: dict[str, object] = {"strategy": ["virtual"], "workers": [1], "seed": [0]}
    request = request_of(study_file(folder / "digits.toml", case, {}, sweep))
    target = folder / "studies" / f"{request.study.name}-recipe"
    request = replace(request, target=target)
    planned = plan_recipe(request, [1, options.workers], options.trials, "virtual")
    one = Searched(case, folder, planned, search_recipe(planned, 1))
    many = Searched(case, folder, planned, search_recipe(planned, options.workers))
    tuned, recipe = chosen(one, options.seeds), chosen(many, options.seeds)
    workers = f"{options.workers} workers"
    print(
        f"{options.case}, {options.seeds} new seeds, one worker by its recipe: {tuned.mean():.4f}"
    )
    print(
        f"{workers} by theirs: {recipe.mean():.4f}, to one {difference(recipe, tuned)}",
        flush=True,
    )
    for name in options.only:
        factor, seen = changed(many, name, options.seeds)
        print(f"{name}: {workers}, {factor:g} x rate: {seen.mean():.4f}")
        print(
            f"  to their recipe {difference(seen, recipe)}, to one by its recipe {difference(seen, tuned)}",
            flush=True,
        )
        if CHANGES[name].keeps_samples:
            continue  # with one worker there is nothing to keep
        factor, alike = changed(one, name, options.seeds)
        print(
            f"  one worker, {factor:g} x rate: {alike.mean():.4f}, to its recipe {difference(alike, tuned)}"
        )
        print(
            f"  {workers} to one, both changed: {difference(seen, alike)}", flush=True
        )


if __name__ == "__main__":
    main()
