"""Does a larger batch cost quality once its learning rate is tuned: published rules against recipes.

    python benchmarks/recipes.py FOLDER --data DATA [--case mnist|nuclei] [--workers N,N,...]
        [--trials N] [--seeds N] [--most-seeds N]

FOLDER takes ordinary studies, so an interrupted benchmark continues where it was; DATA holds mnist/mnist.npz
and nuclei/ (images, masks). `virtual` computes all workers on one device:

- recipe: `scalestudy recipe` searches on seeds 0 to 2, and trains its choice on new ones, from 3;
- published: each rule for large batches at the rate of one worker, on the same new seeds;
- real: two workers of TensorFlow's own strategy with the recipe of two must reach its quality.

mnist is a CNN on 5,120 digits of 14 x 14, batch 80 a worker, 8 epochs; nuclei a U-Net on 64 x 64, batch 4,
15 epochs. Margins are stated beforehand: 0.002 of accuracy and 0.01 of IoU on 8 workers, 0.005 and 0.02 on 14
and more. `--seeds` show the spread; from it follows how many seeds the margins need (at most `--most-seeds`),
and all rows are trained on as many. Two one-sided tests (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987),
within seeds and at the level of a second look, end each row: equivalent within its margin, worse by so much,
or not settled. The critical batch of up to 8 workers should predict the samples that more need within 25 %.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

import scalestudy
from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.findings import Findings, analyse
from scalestudy.analysis.larger_batch import fit_critical_batch
from scalestudy.analysis.runs import Key, Run
from scalestudy.analysis.scales import geometric_mean
from scalestudy.analysis.sequential import compare_grid
from scalestudy.app.plan import request_of
from scalestudy.config.toml_text import toml_line
from scalestudy.features.recipe.page import describe_trial
from scalestudy.features.recipe.run_trials import (
    plan_recipe,
    search_recipe,
    train_choice,
)
from scalestudy.features.recipe.search import DIVERGED, RUNGS, SEEDS
from scalestudy.report.figure import Picture, colour_and_shape, data, figure
from scalestudy.report.number_format import with_interval

RULE, LEARNS_FROM = "train.learning_rate_scaling", 8
"""The swept key, and the largest number of workers to which the critical batch is fitted."""


@dataclass(frozen=True)
class Case:
    """A model with its data, the rules, and the margin of quality for each number of workers."""

    task: str
    source: str
    image_size: tuple[int, int]
    batch: int
    epochs: int
    rules: tuple[str, ...]
    margins: dict[int, float]


CASES = {
    "mnist": Case(
        "cnn",
        "digits14.npz",
        (14, 14),
        80,
        8,
        ("none", "sqrt", "linear"),
        {2: 0.002, 4: 0.002, 8: 0.002, 14: 0.005, 16: 0.005, 32: 0.005},
    ),
    "nuclei": Case(
        "unet",
        "nuclei",
        (64, 64),
        4,
        15,
        ("none", "linear"),
        {2: 0.01, 4: 0.01, 8: 0.01, 14: 0.02, 32: 0.02},
    ),
}


def digits(data: Path, file: Path) -> None:
    """Write 5,120 training and 2,000 test digits of MNIST, averaged to 14 x 14."""
    with np.load(data / "mnist" / "mnist.npz") as found:

        def halved(images: np.ndarray) -> np.ndarray:
            return images.reshape(-1, 14, 2, 14, 2).mean((2, 4)).astype(np.uint8)

        np.savez(
            file,
            x_train=halved(found["x_train"][:5120]),
            y_train=found["y_train"][:5120],
            x_test=halved(found["x_test"][:2000]),
            y_test=found["y_test"][:2000],
        )


def study_file(
    file: Path, case: Case, train: dict[str, object], sweep: dict[str, object]
) -> Path:
    """Write a study file of a case."""
    basic = {
        "batch_size": case.batch,
        "epochs": case.epochs,
        "evaluate_every": 2,
        "gallery": False,
    }
    lines = [
        toml_line("task", case.task),
        "",
        "[data]",
        toml_line("source", case.source),
    ]
    lines += [toml_line("image_size", list(case.image_size)), "", "[train]"]
    lines += [toml_line(key, value) for key, value in (basic | train).items()]
    lines += ["", "[sweep]", *(toml_line(key, value) for key, value in sweep.items())]
    file.write_text("\n".join(lines) + "\n")
    return file


def trained(
    case: Case, folder: Path, workers: Sequence[int], trials: int, seeds: int
) -> list[Run]:
    """Run what is missing, draw the trials, and return the runs on new seeds, recipes with that as rule."""
    new = list(range(SEEDS, SEEDS + seeds))
    sweep: dict[str, object] = {
        "strategy": ["virtual"],
        "workers": list(workers),
        "seed": [0],
    }
    request = request_of(study_file(folder / "digits.toml", case, {}, sweep))
    request = replace(
        request, target=folder / "studies" / f"{request.study.name}-recipe"
    )
    planned, runs, tried = plan_recipe(request, workers, trials, "virtual"), [], []
    for count in planned.workers:
        recipe = search_recipe(planned, count)
        tried += [
            {
                "series": f"{count:,} workers" if count > 1 else "1 worker",
                "rate": rate,
                "quality": score,
            }
            for trial, score in recipe.scores[0].items()
            if (rate := planned.train.learning_rate * trial.peak(recipe.search.kappa))
            and score > DIVERGED
        ]
        if recipe.trial is None:
            print(f"{count} workers: every trial diverged")
            continue
        print(f"{count} workers: {describe_trial(recipe.trial)}", flush=True)
        rule, rate, warmup, _ = planned.settings(recipe.trial, case.epochs)
        train = {
            "learning_rate_scaling": rule,
            "learning_rate": rate,
            "warmup_epochs": warmup,
        }
        repeated = train_choice(planned, count, recipe.trial, seeds)
        runs += [
            replace(
                run, result=run.result.model_copy(update={"swept": {RULE: "recipe"}})
            )
            for run in repeated
        ]
        if count == 2:
            real = sweep | {"workers": [2], "strategy": ["native"], "seed": new[:1]}
            [two] = scalestudy.run(
                str(study_file(folder / "real.toml", case, train, real))
            ).findings.runs
            print(
                f"  seed {new[0]}: real {two.result.quality:.4f}, virtual {repeated[0].result.quality:.4f}"
            )
    draw(tried, folder / "trials.svg", case)
    rules = sweep | {"seed": new, RULE: list(case.rules)}
    published = scalestudy.run(
        str(study_file(folder / "published.toml", case, {}, rules))
    )
    return [*published.findings.runs, *runs]


def draw(tried: list[dict[str, Any]], file: Path, case: Case) -> None:
    """Draw the quality of the short trials against the largest learning rate."""
    names = list(dict.fromkeys(point["series"] for point in tried))
    colour, shape = colour_and_shape(names, False, "Workers")
    rate = alt.X(
        "rate:Q", title="Largest learning rate", scale=alt.Scale(type="log", nice=False)
    )
    chart = alt.Chart(data(tried)).encode(
        rate, alt.Y("quality:Q", title="Quality", scale=alt.Scale(zero=False)), colour
    )
    best = chart.mark_line().encode(y="max(quality):Q")
    layers = alt.layer(best, chart.mark_point(filled=True, size=60).encode(shape))
    title = f"Trials of {RUNGS[0] * case.epochs:g} of {case.epochs} epochs"
    file.write_text(
        Picture(
            figure("trials", title, layers.properties(width=420, height=240), "")
        ).svg
    )


def reference_of(findings: Findings) -> Key:
    """The row of one worker with its own recipe."""
    [found] = [
        key
        for key in findings.measures.quality.values
        if key.workers == 1 and key.swept[RULE] == "recipe"
    ]
    return found


def difference(case: Case, findings: Findings, key: Key) -> tuple[Estimate, int | None]:
    """A row's quality minus that of one worker, and how many seeds its margin needs."""
    measures, reference = findings.measures, reference_of(findings)
    return compare_grid(
        measures.quality, key, reference, measures.looks, case.margins[key.workers]
    )


def seeds_of(case: Case, findings: Findings) -> int:
    """Seeds that the margins of all recipes need, by the spread seen so far."""
    keys = [
        row.key
        for row in findings.rows
        if row.key.swept[RULE] == "recipe" and row.workers > 1
    ]
    return max((difference(case, findings, key)[1] or 0 for key in keys), default=0)


def outcome(change: Estimate, margin: float, needed: int | None) -> str:
    """How two one-sided tests end."""
    if change.low is None or change.high is None:
        return "not settled: the spread is unknown"
    if -margin <= change.low and change.high <= margin:
        return f"equivalent within {margin:g}"
    if change.low >= -margin:
        return f"no worse within {margin:g}, and perhaps better"
    if change.high < 0:
        return f"worse by {-change.high:.4f} to {-change.low:.4f}"
    return f"not settled within {margin:g}" + (
        f" (about {needed} seeds)" if needed else ""
    )


def show(case: Case, findings: Findings) -> None:
    """Print the quality of each row, whether it is equivalent, and predictions of samples."""
    reference = reference_of(findings)
    for row in findings.rows:
        text = f"{row.key.swept[RULE]:8}{row.workers:4}{row.runs:4} seeds  {with_interval(row.quality, 4):24}"
        if row.key != reference and row.workers in case.margins:
            change, needed = difference(case, findings, row.key)
            text += f"{with_interval(change, 4):28}{outcome(change, case.margins[row.workers], needed)}"
        print(text)
    useful = {
        row.workers: row.useful.samples
        for row in findings.rows
        if row.key.swept[RULE] == "recipe" and row.useful and row.useful.ratio.value
    }
    critical = fit_critical_batch(
        {n * case.batch: useful[n] for n in useful if n <= LEARNS_FROM}
    )
    if critical is None:
        print(f"no critical batch: {sorted(useful)} workers reached the target")
        return
    for workers in (n for n in sorted(useful) if n > LEARNS_FROM):
        predicted = critical.ratio(workers * case.batch, case.batch)
        measured = geometric_mean(useful[workers]) / geometric_mean(useful[1])
        off = abs((predicted.value or 0) / measured - 1)
        print(
            f"r({workers}) predicted {with_interval(predicted, 2)}, measured {measured:.2f}: off by {off:.0%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--workers", default="1,2,4,8,14,32")
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument(
        "--seeds", type=int, default=8, help="seeds that show the spread, 3 or more"
    )
    parser.add_argument(
        "--most-seeds", type=int, default=40, help="most seeds of a row"
    )
    options = parser.parse_args()
    workers = [int(count) for count in options.workers.split(",")]
    for name in [options.case] if options.case else CASES:
        case, folder = CASES[name], options.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        if name == "nuclei":
            case = replace(case, source=str((options.data / case.source).absolute()))
        elif not (folder / case.source).exists():
            digits(options.data, folder / case.source)
        print(f"{name}: {options.seeds} seeds at first, {options.trials} trials")
        findings = analyse(
            name, trained(case, folder, workers, options.trials, options.seeds)
        )
        needed = min(seeds_of(case, findings), options.most_seeds)
        if needed > options.seeds:
            show(case, findings)
            print(f"{name}: {needed} seeds, as far as they spread", flush=True)
            findings = analyse(
                name, trained(case, folder, workers, options.trials, needed)
            )
        show(case, findings)


if __name__ == "__main__":
    main()
