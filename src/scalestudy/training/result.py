"""The result of a run: combine its records, times, resource use and digests."""

import datetime
import math
from collections.abc import Sequence

from scalestudy.config.metrics import Sense, gain
from scalestudy.config.point import Point
from scalestudy.engines.base import Trainer
from scalestudy.measure.usage import Usage
from scalestudy.store.records import EpochRecord, Result
from scalestudy.store.usage import GpuUse
from scalestudy.training.evaluation import Chance, Measured
from scalestudy.training.session import Session


def result_of(
    session: Session,
    records: list[EpochRecord],
    validation: Measured,
    test: Measured,
    chance: Chance,
    digest: str,
    usages: Sequence[Usage],
    model_missing: str | None,
    workers_lost: int,
) -> Result:
    """Return the result of a finished run.

    `validation` was measured with the saved weights. `usages` has one entry per process. `model_missing` is
    the reason why the model was not saved.
    """
    point, split, metric = session.point, session.split, session.metric
    flops = session.trainer.flops()
    steady = [record for record in records[1:] if not record.resumed]
    seconds = sum(record.train_seconds for record in steady)
    timing = session.timer.record(session) if session.timer else None
    if timing is None:
        best = best_epoch(records, metric, session.trainer.sense)
        quality = {
            "quality": validation.values[metric],
            "validation": validation.values,
            "test": test.values,
            "validation_matrices": validation.matrices,
            "test_matrices": test.matrices,
            "best_quality": best.validation[metric],
            "best_epoch": best.epoch,
            "throughput": sum(record.samples for record in steady) / seconds if steady else None,
        }
    else:  # it has hardly learned
        quality = {"throughput": timing.steps * len(split.train) / session.steps / timing.seconds}
    gpus = [usage.gpu_uses(rank) for rank, usage in enumerate(usages)]
    return Result(
        name=point.name,
        engine=point.engine,
        strategy=point.strategy,
        implementation=point.implementation,
        communication=session.group.communication,
        local_steps=point.train.local_steps if point.workers > 1 else 1,
        workers=point.workers,
        seed=point.seed,
        swept=point.swept,
        per_worker_batch=point.per_worker_batch,
        global_batch=point.global_batch,
        epochs=len(records),
        updates=session.updates,
        samples_processed=sum(record.samples for record in records),
        training_samples=len(split.train),
        steady_epochs=len(steady),
        training_seconds=session.elapsed,
        wall_seconds=session.clock.wall,
        restarts=session.restarts,
        phases=session.clock.phases(),
        metric=metric,
        better=session.trainer.sense.better,
        bounded=session.trainer.sense.bounded,
        quality_split=split.quality_split,
        quality_labels=chance.labels,
        constant_quality=chance.quality,
        class_names=list(session.prepared.class_names),
        class_weights=point.class_weights and list(point.class_weights),
        timing=timing,
        **quality,
        parameters=session.trainer.parameters,
        bucket_bytes=exchanged_bytes(point, session.trainer),
        bucket_work=[bucket.work for bucket in session.trainer.buckets if bucket.work is not None],
        precision=point.train.precision,
        weights=point.train.weights,
        input_scaling=point.train.input_scaling,
        deterministic=point.train.deterministic,
        weights_digest=digest,
        model_missing=model_missing,
        initial_statistics=session.initial_statistics,
        workers_lost=workers_lost,
        oversubscribed=point.oversubscribed,
        peak_memory_bytes=[int(usage.peak_memory) for usage in usages],
        cpu_percent=[usage.cpu_percent for usage in usages],
        gpu_percent=[percent for uses in gpus if (percent := mean_percent(uses)) is not None],
        gpus=[use for uses in gpus for use in uses],
        processes=[usage.process_use(rank) for rank, usage in enumerate(usages)],
        nodes=[usage.node_use(rank) for rank, usage in enumerate(usages) if usage.node],
        usage_of=session.usage_of,
        flops_per_sample=flops.per_sample,
        flops_uncounted=list(flops.uncounted),
        began=session.began,
        order=point.turn and point.turn.order,
        place=point.turn and point.turn.place,
        hosts=sorted(session.hosts),
        finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def exchanged_bytes(point: Point, trainer: Trainer) -> list[int]:
    """Return the bytes of each bucket of gradients that a worker exchanges, after compression."""
    compressed = point.launch.compression != "none"
    word = 8 if point.train.precision == "float64" else 4
    return [bucket.bytes * 2 // word if compressed else bucket.bytes for bucket in trainer.buckets]


def mean_percent(uses: Sequence[GpuUse]) -> float | None:
    """Return the mean utilisation of the GPUs that report it, or None if no GPU does."""
    known = [use.percent for use in uses if use.percent is not None]
    return sum(known) / len(known) if known else None


def best_epoch(records: list[EpochRecord], metric: str, sense: Sense) -> EpochRecord:
    """Return the first evaluated epoch with the best metric. Values that are not finite are ignored."""
    assert sense.better
    evaluated = [record for record in records if record.validation]
    finite = [record for record in evaluated if math.isfinite(record.validation[metric])]
    better = sense.better
    return max(finite or evaluated[-1:], key=lambda record: gain(record.validation[metric], better))
