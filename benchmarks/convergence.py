"""The published U-Net study at reduced size: is its loss of quality one of statistics, or of the batch?

    python benchmarks/convergence.py out.json [--minutes 40]       # runs what out.json lacks
    python benchmarks/convergence.py out.json --figure FILE.svg    # draws what it holds

The recipe is that of https://doi.org/10.5281/zenodo.7639190: the U-Net 8-16-32-64-128, Adam at 1e-3 times
the workers, halved at 40, 60 and 75 % of the epochs, binary cross-entropy, a fixed batch per worker. As
there, one worker makes 70 updates in an epoch and 14 make 5. Smaller are the images (32 x 32 synthetic
micrographs of indents, 140 to train on, instead of 1,120 of 1024 x 768), the batch per worker (2 instead of
16) and the epochs (24 instead of 200). Workers are virtual. Training does not depend on `train.batch_norm`,
so each run is evaluated with both statistics, eight times.
"""

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

WORKERS = (14, 1, 8, 4, 2)
RULES = ("linear", "sqrt", "none")
SEEDS = (0, 1, 2)
TRAIN, HELD_OUT, SIDE, EPOCHS, BATCH, EVALUATIONS = 140, 60, 32, 24, 2, 8


def runs() -> list[dict[str, Any]]:
    """Every run: the published rule first, then the others, which at one worker are the same."""
    order = itertools.product(RULES, SEEDS, WORKERS)
    return [
        {"workers": workers, "rule": rule, "seed": seed}
        for rule, seed, workers in order
        if rule == "linear" or workers > 1
    ]


def train(workers: int, rule: str, seed: int) -> dict[str, Any]:
    """Train once; return the evaluations with both statistics, by epoch."""
    from scalestudy.cluster.placement import Placement
    from scalestudy.config.point import Point
    from scalestudy.config.settings import DataSettings
    from scalestudy.data.preparation import prepare
    from scalestudy.data.split import ensure_split
    from scalestudy.engines.group import join
    from scalestudy.engines.keras.arithmetic import set_seed_and_precision
    from scalestudy.engines.tensorflow.engine import ENGINE
    from scalestudy.measure.clock import PhaseClock
    from scalestudy.training.session import Session

    data = DataSettings(source=f"indents:{TRAIN + HELD_OUT}", image_size=(SIDE, SIDE))
    prepared = prepare(data)
    split = ensure_split(prepared, HELD_OUT / (TRAIN + HELD_OUT), 0)
    settings = {
        "epochs": EPOCHS,
        "batch_size": BATCH,
        "optimizer": "adam",
        "learning_rate": 1e-3,
        "learning_rate_scaling": rule,
        "schedule": "steps",
        "evaluate_every": EPOCHS // EVALUATIONS,
    }
    point = Point.model_validate(
        {
            "name": "convergence",
            "study": "convergence",
            "task": "unet",
            "strategy": "virtual",
            "workers": workers,
            "seed": seed,
            "data": data.model_dump(),
            "train": settings,
            "terms": {"implementation": "virtual"},
        }
    ).with_files("", "")
    set_seed_and_precision(seed, "float32")
    alone = Placement(0, 1, 0, 1, 0, ("localhost",), "alone")
    joined = join("virtual", alone, workers=workers, device="cpu")
    session = Session(point, ENGINE, joined, prepared, split, PhaseClock())
    moving = point.model_copy(
        update={"train": point.train.model_copy(update={"batch_norm": "moving"})}
    )
    start, curve = time.process_time(), []
    for record in session.epoch_records():
        if record.validation:
            session.point = moving
            with_moving = session.measure(split.validation)
            session.point = point
            curve.append(
                {
                    "epoch": record.epoch,
                    "loss": record.loss,
                    "fresh": record.validation,
                    "moving": with_moving,
                }
            )
    seconds = time.process_time() - start
    return {"updates": session.updates, "cpu_seconds": seconds, "curve": curve}


def draw(done: list[dict[str, Any]], file: Path) -> None:
    """Draw the IoU after training against workers, and the IoU of the first seed against updates."""
    import altair as alt

    from scalestudy.report.figure import Picture, colour_and_shape, data, figure
    from scalestudy.report.figure_data import workers_axis

    linear = [run for run in done if run["rule"] == "linear"]
    names = {"fresh": "computed afresh", "moving": "moving"}
    ends = [
        {
            "series": name,
            "workers": run["workers"],
            "iou": round(run["curve"][-1][kind]["iou"], 4),
        }
        for run in linear
        for kind, name in names.items()
    ]
    curves = [
        {
            "series": name,
            "workers": f"{run['workers']} workers",
            "iou": round(point[kind]["iou"], 4),
            "updates": run["updates"] * point["epoch"] // EPOCHS,
        }
        for run in linear
        if run["seed"] == 0 and run["workers"] in (1, 14)
        for point in run["curve"]
        for kind, name in names.items()
    ]
    colour, shape = colour_and_shape(list(names.values()), False, "Statistics")
    iou = alt.Y(
        "iou:Q", title="IoU of held-out images", scale=alt.Scale(domain=[0, 0.6])
    )
    left = alt.Chart(data(ends)).encode(
        workers_axis([run["workers"] for run in linear]), iou, colour
    )
    means = left.mark_line().encode(y=alt.Y("mean(iou):Q"))
    updates = alt.X("updates:Q", title="Updates", scale=alt.Scale(type="log"))
    right = alt.Chart(data(curves)).encode(updates, iou, colour)
    panels = (
        alt.layer(means, left.mark_point(filled=True, size=60).encode(shape)),
        alt.layer(
            right.mark_line().encode(detail="workers:N"),
            right.mark_point(size=40).encode(shape),
        ),
    )
    title = "The published recipe at reduced size, judged by two kinds of statistics"
    both = alt.hconcat(*(panel.properties(width=320, height=230) for panel in panels))
    file.write_text(Picture(figure("convergence", title, both, "")).svg)


def main() -> None:
    """Run what is missing, or draw."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--minutes", type=float, default=40)
    arguments.add_argument("--figure", type=Path)
    given = arguments.parse_args()
    done: list[dict[str, Any]] = (
        json.loads(given.out.read_text()) if given.out.exists() else []
    )
    if given.figure:
        draw(done, given.figure)
        return
    known = [{key: run[key] for key in ("workers", "rule", "seed")} for run in done]
    end = time.monotonic() + 60 * given.minutes
    for run in runs():
        if run in known:
            continue
        if time.monotonic() > end:
            break
        done.append(run | train(**run))
        given.out.write_text(json.dumps(done, indent=1))
        last = done[-1]["curve"][-1]
        iou = {kind: round(last[kind]["iou"], 3) for kind in ("fresh", "moving")}
        print(
            run,
            done[-1]["updates"],
            f"{done[-1]['cpu_seconds']:.0f} s",
            round(last["loss"], 4),
            iou,
            flush=True,
        )


if __name__ == "__main__":
    main()
