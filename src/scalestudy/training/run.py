"""A worker's part in one run: from its folder and its placement to the files it leaves."""

import datetime
import time
from typing import Any

import numpy as np

from scalestudy.cluster.placement import Placement
from scalestudy.data.prepared import Prepared
from scalestudy.data.split import Split
from scalestudy.errors import RunError
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.environment import granted_cpus, rank_record
from scalestudy.measure.utilisation import Utilisation, peak_memory
from scalestudy.strategies.registry import make_strategy
from scalestudy.study.point import Point
from scalestudy.study.records import EpochRecord, Progress, Result
from scalestudy.study.store import RunFolder
from scalestudy.training.framework import build_record, configure, devices
from scalestudy.training.session import Moment, Session

PROGRESS_EVERY = 1.0
"""Seconds between two progress records."""
RESULT_WITHIN = 600.0
"""Seconds that the other ranks wait for rank 0's result, which it writes after saving the model."""


def run(folder: RunFolder, point: Point, placement: Placement, clock: PhaseClock, *, device: str) -> None:
    """Compute a run's part of this rank; rank 0 writes its records.

    Raises:
        RunError: If the workers' weights differ at the end.
    """
    assert point.prepared
    assert point.split
    cpus = granted_cpus()
    with clock.phase("framework"):
        configure(point, threads=len(cpus))
    with clock.phase("join"):
        strategy = make_strategy(
            point.implementation, placement, workers=point.workers, device=device,
            sync_batch_norm=point.train.sync_batch_norm, communication=point.launch.communication,
        )  # fmt: skip
    names = devices(device)
    folder.write_rank(
        rank_record(placement, threads=len(cpus), devices=names, build=build_record(point.implementation))
    )
    utilisation = Utilisation(len(cpus), _nvml_indices(device))
    prepared, split = Prepared.open(point.prepared), Split.load(point.split)
    session = Session(point, strategy, prepared, split, clock, utilisation)
    reporter = _Reporter(folder, session) if strategy.rank == 0 else None
    if reporter:
        reporter.phase("compile")
    session.compile()
    records = []
    for record in session.epoch_records(reporter.moment if reporter else lambda _: None):
        records.append(record)
        if reporter:
            reporter.epoch(record)
    test = session.evaluate(split.test) if len(split.test) else {}
    with clock.phase("proof"):
        digests = session.digests()
        ranks = strategy.host_sum(_rank_row(strategy.rank, strategy.processes, utilisation))
    if len(set(digests)) != 1:
        raise RunError(
            "equal weights on all workers at the end of the run",
            f"{len(set(digests))} different sets of weights on {len(digests)} workers",
            "A layer keeps state of its own on every worker; its results would depend on who saves it.",
        )
    if reporter:
        reporter.phase("saving")
        session.save(str(folder.path / "model.keras"))
        folder.write_result(_result(point, session, records, test, digests[0], ranks, clock, split))
    else:
        _await_result(folder)
    strategy.close()


def _await_result(folder: RunFolder) -> None:
    """Stay until rank 0 is done: a ring's last sum may still read from a rank that has its own answer."""
    deadline = time.monotonic() + RESULT_WITHIN
    while folder.result() is None:
        if time.monotonic() > deadline:
            raise RunError(
                f"rank 0 to write its result within {RESULT_WITHIN:.0f} s of the others' end",
                "no result.json",
                "Look into rank 0's log, and whether all nodes see the same folder.",
            )
        time.sleep(0.05)


class _Reporter:
    """Rank 0's notes while a run is alive."""

    def __init__(self, folder: RunFolder, session: Session) -> None:
        self._folder, self._session = folder, session
        self._written = 0.0
        self._last = Progress(
            phase="start-up", epoch=0, epochs=session.epochs, step=0, steps=session.steps, updated=0
        )

    def phase(self, phase: str) -> None:
        self._write(phase=phase)

    def moment(self, moment: Moment) -> None:
        if time.monotonic() - self._written < PROGRESS_EVERY:
            return
        throughput = moment.samples / moment.seconds if moment.seconds else None
        steps_left = (self._session.epochs - moment.epoch + 1) * moment.steps - moment.step
        self._write(
            phase="training", epoch=moment.epoch, step=moment.step, throughput=throughput,
            seconds_left=steps_left * moment.seconds / moment.step,
        )  # fmt: skip

    def epoch(self, record: EpochRecord) -> None:
        self._folder.append_epoch(record)
        metric = next(iter(self._session.task.metrics))
        quality = record.validation.get(metric, self._last.quality)
        left = (self._session.epochs - record.epoch) * (record.train_seconds + record.evaluation_seconds)
        self._write(
            phase="training", epoch=record.epoch, step=record.steps, quality=quality,
            throughput=record.samples / record.train_seconds, seconds_left=left,
        )  # fmt: skip

    def _write(self, **changes: Any) -> None:
        self._last = self._last.model_copy(update={**changes, "updated": time.time()})
        self._folder.write_progress(self._last)
        self._written = time.monotonic()


def _rank_row(rank: int, processes: int, utilisation: Utilisation) -> Any:
    """Peak memory, CPU and GPU utilisation of each process, this one's row filled; shape [processes, 3]."""
    table = np.zeros((processes, 3))
    gpu = utilisation.gpu_percent()
    table[rank] = peak_memory(), utilisation.cpu_percent(), -1.0 if gpu is None else gpu
    return table


def _nvml_indices(device: str) -> list[int]:
    import os

    if device == "cpu":
        return []
    return [int(name) for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.isdigit()]


def _result(
    point: Point,
    session: Session,
    records: list[EpochRecord],
    test: dict[str, float],
    digest: str,
    ranks: Any,
    clock: PhaseClock,
    split: Split,
) -> Result:
    metric = next(iter(session.task.metrics))
    steady = records[1:]
    seconds = sum(record.train_seconds for record in steady)
    evaluated = [record for record in records if record.validation]
    best = max(evaluated, key=lambda record: record.validation[metric])
    return Result(
        name=point.name,
        strategy=point.strategy,
        implementation=point.implementation,
        workers=point.workers,
        seed=point.seed,
        swept=point.swept,
        per_worker_batch=point.per_worker_batch,
        global_batch=point.global_batch,
        epochs=len(records),
        updates=session.updates,
        samples_processed=sum(record.samples for record in records),
        training_samples=len(split.train),
        throughput=sum(record.samples for record in steady) / seconds if steady else None,
        steady_epochs=len(steady),
        training_seconds=session.elapsed,
        wall_seconds=clock.wall,
        phases=clock.phases(),
        metric=metric,
        quality=records[-1].validation[metric],
        quality_split=split.quality_split,
        validation=records[-1].validation,
        test=test,
        best_quality=best.validation[metric],
        best_epoch=best.epoch,
        parameters=session.task.model.count_params(),
        weights_digest=digest,
        oversubscribed=point.oversubscribed,
        peak_memory_bytes=[int(row[0]) for row in ranks],
        cpu_percent=[float(row[1]) for row in ranks],
        gpu_percent=[float(row[2]) for row in ranks if row[2] >= 0],
        finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
