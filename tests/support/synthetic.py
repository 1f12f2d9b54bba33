"""Synthetic studies: plausible runs with known answers. Only values marked as published were measured."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from published import TABLES, column
from scalestudy.analysis.measures import measure_rows
from scalestudy.analysis.runs import Planned, Run, group_runs
from scalestudy.analysis.study_table import Row, as_frame, rows_of
from scalestudy.config.file import Study
from scalestudy.config.metric_senses import Better
from scalestudy.config.point import Point
from scalestudy.config.settings import TrainSettings
from scalestudy.config.task_defaults import task_defaults
from scalestudy.store.records import EpochRecord, Failure, RankRecord, Result
from scalestudy.store.study_folder import StudyFolder

U_NET = {row[0]: tuple(row[1:]) for row in TABLES["u_net"]["rows"]}
"""Published: workers -> native seconds, S, IoU, Horovod seconds, S, IoU."""

CASSAVA = column("cassava", "seconds")
"""Published seconds of training a ResNet-50 on 1 to 4 GPUs."""


def run(
    strategy: str = "single",
    workers: int = 1,
    seed: int = 0,
    *,
    throughput: float | None = 100.0,
    training_seconds: float | None = None,
    quality: float = 0.95,
    epochs: int = 6,
    swept: dict[str, Any] | None = None,
    samples: int = 1000,
    metric: str = "iou",
    better: Better | None = None,
    chance: float | None = None,
    losses: Sequence[float] = (),
    name: str | None = None,
    implementation: str | None = None,
    communication: str | None = None,
    oversubscribed: str | None = None,
) -> Run:
    """A finished run whose epochs add up to its result; `losses` are the losses of its first epochs."""
    swept = swept or {}
    rate = throughput or 100.0
    seconds = (
        training_seconds if training_seconds is not None else epochs * samples / rate
    )
    name = name or "-".join(
        [strategy, f"w{workers}", f"s{seed}", *(str(v) for v in swept.values())]
    )
    records, elapsed = [], 0.0
    weights = [1.25 if number == 0 and epochs > 1 else 1.0 for number in range(epochs)]
    for number, weight in enumerate(weights, start=1):
        spent = seconds * weight / sum(weights)
        elapsed += spent
        left = 0.9 ** (number / workers**0.3)
        records.append(
            EpochRecord(
                epoch=number,
                steps=max(1, samples // (16 * workers)),
                samples=samples,
                learning_rate=1e-3 * workers,
                loss=losses[number - 1] if number <= len(losses) else 0.05 + 0.6 * left,
                train_seconds=spent,
                input_seconds=0.03 * spent,
                evaluation_seconds=0.05 * spent,
                elapsed_training_seconds=elapsed,
                validation={
                    "loss": 0.08 + 0.6 * left,
                    metric: quality * (1 - left / 3),
                },
            )
        )
    phases = {
        "start-up": 6.0 + 0.3 * workers,
        "compile": 9.0,
        "steps": 0.95 * seconds,
        "input": 0.05 * seconds,
        "evaluation": 0.05 * seconds,
        "saving": 0.4,
    }
    result = Result(
        name=name,
        strategy=strategy,
        implementation=implementation
        or ("single" if strategy == "native" and workers == 1 else strategy),
        communication=communication,
        workers=workers,
        seed=seed,
        swept=swept,
        per_worker_batch=16,
        global_batch=16 * workers,
        epochs=epochs,
        updates=epochs * max(1, samples // (16 * workers)),
        samples_processed=epochs * samples,
        training_samples=samples,
        throughput=throughput,
        steady_epochs=epochs - 1,
        training_seconds=seconds,
        wall_seconds=sum(phases.values()),
        phases=phases,
        metric=metric,
        better=better,
        quality=quality,
        quality_labels=None if chance is None else 1000,
        constant_quality=chance,
        best_quality=quality,
        best_epoch=epochs,
        parameters=485_673,
        weights_digest="0" * 64,
        oversubscribed=oversubscribed,
        peak_memory_bytes=[900_000_000] * workers,
        cpu_percent=[96.0] * workers,
        finished="2026-01-02T03:04:05Z",
    )
    return Run(result, tuple(records), f"points/{name}/run-1", (rank(workers),))


def changed(run: Run, **fields: Any) -> Run:
    """The run with other fields of its result."""
    return replace(run, result=run.result.model_copy(update=fields))


def on_nodes(run: Run, per_node: int) -> Run:
    """The run with a record of each rank, so many ranks on a node."""
    return on_hosts(
        run, *(f"node{number // per_node}" for number in range(run.result.workers))
    )


def on_hosts(run: Run, *hosts: str) -> Run:
    """The run with a record of each rank on these hosts."""
    records = ({"rank": number, "host": host} for number, host in enumerate(hosts))
    return replace(
        run,
        ranks=tuple(rank(len(hosts)).model_copy(update=record) for record in records),
    )


def rows(
    strategy: str, of: str, values: dict[int, Sequence[Any]], **options: Any
) -> list[Run]:
    """Runs whose field `of` has these values: one list by number of workers, one value for each seed."""
    return [
        run(strategy, workers, seed, **{of: value}, **options)
        for workers, row in values.items()
        for seed, value in enumerate(row)
    ]


def rank(size: int = 1) -> RankRecord:
    """Environment of rank 0 on a synthetic machine."""
    return RankRecord(
        rank=0,
        size=size,
        local_rank=0,
        host="node01",
        pid=4242,
        placement_source="local launcher",
        cpus=[0],
        threads=1,
        devices=["/device:CPU:0"],
        versions={"python": "3.11.2", "tensorflow": "2.21.0", "keras": "3.15.0"},
        cpu_model="Made CPU @ 2.5 GHz",
        memory_bytes=16 * 2**30,
        kernel="Linux 6.1",
        environment={"OMP_NUM_THREADS": "1"},
    )


def published(epochs: int = 8) -> list[Run]:
    """The published U-Net table with one seed; times, speed-ups and IoU are published, epochs synthetic."""
    runs = []
    for workers, (
        native,
        s_native,
        iou_native,
        horovod,
        s_horovod,
        iou_horovod,
    ) in U_NET.items():
        for strategy, seconds, speed, iou in (
            ("native", native, s_native, iou_native),
            ("horovod", horovod, s_horovod, iou_horovod),
        ):
            base = 23.8 if strategy == "native" else 23.7
            runs.append(
                run(
                    strategy,
                    workers,
                    throughput=base * speed,
                    training_seconds=float(seconds),
                    quality=iou,
                    epochs=epochs,
                    samples=896,
                    implementation=None
                    if workers == 1 or strategy == "horovod"
                    else "multiworker",
                )
            )
    return runs


def seeded(
    counts: tuple[int, ...] = (1, 2, 4, 8),
    strategies: tuple[str, ...] = ("mirrored", "horovod"),
    seeds: int = 3,
    swept: dict[str, Any] | None = None,
    serial: float = 0.03,
) -> list[Run]:
    """Several seeds: Amdahl's law with 1 % noise, equal quality but for noise; repeatable."""
    noise = random.Random(7)
    runs = []
    for index, strategy in enumerate(strategies):
        for workers in counts:
            if strategy == "single" and workers > 1:
                continue
            for seed in range(seeds):
                f = serial * (index + 1)
                throughput = 100 * noise.gauss(1, 0.01) / (f + (1 - f) / workers)
                if strategy == "virtual":
                    throughput = 90 * noise.gauss(1, 0.01)
                runs.append(
                    run(
                        strategy,
                        workers,
                        seed,
                        throughput=throughput,
                        quality=0.95 + noise.gauss(0, 0.002),
                        swept=swept,
                        epochs=12,
                    )
                )
    return runs


def oversubscribed() -> list[Run]:
    """Two workers fit the synthetic machine, four do not."""
    reason = "4 workers with 1 core each on 2 cores"
    runs = seeded((1, 2), ("horovod",))
    return runs + [
        run("horovod", 4, seed, throughput=140.0, oversubscribed=reason)
        for seed in range(3)
    ]


def summarise(runs: Sequence[Run]) -> list[Row]:
    """One row per point without its seed, in reading order."""
    return rows_of(measure_rows(group_runs(runs)))


def summary(runs: Sequence[Run]) -> Any:
    """One row per point without its seed, as a frame."""
    return as_frame(summarise(runs))


def plan(runs: list[Run]) -> list[Planned]:
    """The plan of a study whose runs are all done."""
    return [
        Planned(
            r.result.name,
            r.result.strategy,
            r.result.workers,
            r.result.seed,
            "done",
            tuple(r.result.swept.items()),
            r.folder,
        )
        for r in runs
    ]


def unfinished() -> list[Planned]:
    """Points without a result; names and reasons contain text that a page must escape."""
    return [
        Planned(
            "horovod-w8-s2",
            "horovod",
            8,
            2,
            "failed",
            (),
            "points/horovod-w8-s2/run-1",
            "Rank 3 was ended by signal 9: <script>alert('reason')</script>",
        ),
        Planned("horovod-w16-s0", "horovod", 16, 0, "missing"),
        Planned(
            "horovod-w16-s1",
            "horovod",
            16,
            1,
            "running",
            (),
            "points/horovod-w16-s1/run-1",
        ),
    ]


def write(
    path: Path, name: str, runs: list[Run], planned: list[Planned] | None = None
) -> StudyFolder:
    """Write synthetic runs as a study folder; `planned` are the points without a result."""
    everything = [*plan(runs), *(planned or [])]
    points = {point.name: _point(name, point) for point in everything}
    folder = StudyFolder.create_or_open(
        path, Study(name=name, task="unet"), list(points.values()), ""
    )
    for made in runs:
        run_folder = folder.new_run(points[made.result.name])
        run_folder.write_rank(rank(made.result.workers))
        for record in made.epochs:
            run_folder.append_epoch(record)
        run_folder.write_result(made.result)
    for point in planned or []:
        if point.state != "missing":
            run_folder = folder.new_run(points[point.name])
        if point.state == "failed" and point.reason:
            run_folder.write_failure(Failure(rank=3, exit_code=-9, reason=point.reason))
    return folder


def _point(study: str, point: Planned) -> Point:
    implementation = "single" if point.strategy == "native" else point.strategy
    return Point.model_validate(
        {
            "name": point.name,
            "study": study,
            "task": "unet",
            "strategy": point.strategy,
            "workers": point.workers,
            "seed": point.seed,
            "swept": dict(point.swept),
            "data": {"source": "indents"},
            "train": task_defaults("unet").complete_train(TrainSettings()),
            "terms": {"implementation": implementation},
        }
    )
