"""What a run leaves: the models of its last and its best epoch, and its result."""

import contextlib
import datetime
import math
import os
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from scalestudy.config.catalog import has_name
from scalestudy.config.metric_senses import Better, Sense, gain
from scalestudy.config.point import Point
from scalestudy.data.loader import reader_of
from scalestudy.data.samples import leaves
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.interface import Trainer
from scalestudy.measure.utilisation import Usage
from scalestudy.store.model_record import BestRecord, ModelRecord
from scalestudy.store.record_file import file_checksum
from scalestudy.store.records import EpochRecord, GpuUse, NodeUse, ProcessUse, Result
from scalestudy.store.result_fields import fields_of_point
from scalestudy.store.run_folder import RunFolder
from scalestudy.training.chance import Chance
from scalestudy.training.position import Position
from scalestudy.training.session import Session
from scalestudy.util.errors import RunError


def model_record_of(point: Point, prepared: Prepared) -> ModelRecord:
    """Describe the models of a run: task, inputs, classes, data and training settings."""
    (_, dtype), *_ = leaves(reader_of(prepared).forms(np.array([0]))[0])
    checksum = ""
    if not has_name(point.task):
        checksum = file_checksum(Path(point.task))
    shape: tuple[int, ...] = ()
    if prepared.kind != "custom":
        shape = prepared.input_shape
    return ModelRecord(
        engine=point.engine,
        task=point.task,
        task_checksum=checksum,
        kind=prepared.kind,
        input_shape=shape,
        dtype=dtype.name,
        scale=prepared.scale or 1.0,
        class_names=list(prepared.class_names),
        ignore=prepared.ignore,
        data=point.data.model_dump(mode="json"),
        train=point.train.model_dump(mode="json"),
        class_weights=point.class_weights,
    )


def try_saving(folder: RunFolder, trainer: Trainer) -> None:
    """Save the untrained model and load it back, so that a model that cannot be saved fails before training.

    Raises:
        UserError: If the model cannot be saved or loaded.
        RunError: If the file cannot be written to the folder.
    """
    try:
        with _half(folder.model.with_suffix(trainer.file.suffix)) as half:
            # With the suffix of the model, by which frameworks choose the form.
            trainer.file.prove_savable(str(half))
    except OSError as error:
        raise RunError(
            "a folder with space for the model of the run",
            f"{error} at {folder.path}",
            "Free some space or quota there, or name another folder with --out.",
        ) from error


def save_model(folder: RunFolder, trainer: Trainer) -> str | None:
    """Write the model to the run folder atomically.

    Returns:
        None, or the reason why the model could not be written. The traceback is in the log.
    """
    try:
        file = folder.model.with_suffix(trainer.file.suffix)
        with _half(file) as half:
            trainer.file.save(str(half))
            os.replace(half, file)
    except Exception as error:
        # An error of the engine or of the disk does not invalidate the measurements.
        traceback.print_exc()
        first, _, _ = str(error).strip().partition("\n")
        return f"{type(error).__name__}: {first}"
    return None


@contextlib.contextmanager
def _half(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` with the suffix that frameworks require; remove it afterwards."""
    half = path.with_name(f".half.{path.name}")
    # Frameworks would write through a link.
    half.unlink(missing_ok=True)
    try:
        yield half
    finally:
        with contextlib.suppress(OSError):
            half.unlink(missing_ok=True)


def improves(value: float, before: float | None, better: Better) -> bool:
    """Return whether `value` is better than the best value `before`. A value that is not finite never is."""
    if not math.isfinite(value):
        return False
    return before is None or gain(value, better) > gain(before, better)


class BestKeeper:
    """Saves the model after each evaluation that is better than all before; rank 0 writes.

    The files are replaced atomically. A write error is logged and does not stop the run; the previous best
    model stays.
    """

    def __init__(self, folder: RunFolder, session: Session) -> None:
        self._folder = folder
        self._trainer = session.trainer
        self._clock = session.clock
        self._writes = session.group.rank == 0
        self._keeps = session.point.train.keep_best == "quality"
        self._metric = session.trainer.metrics[0]
        self._best: float | None = None
        session.evaluated = self.evaluated

    def begin(self, position: Position | None) -> None:
        """Start with the best model saved before the checkpoint at `position`, or with none."""
        if not self._writes:
            return
        best = self._folder.best_record()
        continues = position is not None and position.epoch > 0
        kept = self._keeps and self._folder.best.exists()
        if continues and kept and best is not None and best.metric == self._metric:
            self._best = best.value
        else:
            # The file would be of another run, or of an epoch that is trained again.
            self._folder.forget_best()

    def evaluated(self, record: EpochRecord) -> None:
        """Save the model if `record` is the best so far. Every rank must call this, with these weights."""
        if not self._keeps:
            return
        with self._clock.phase("saving"):
            if self._writes:
                self._consider(record.epoch, record.validation[self._metric])

    def _consider(self, epoch: int, value: float) -> None:
        better = self._trainer.sense.better
        # The task's first metric has one.
        assert better
        if not improves(value, self._best, better):
            return
        # A job that was requeued may run while an older one still writes.
        self._folder.refuse_other_job()
        try:
            file = self._folder.best.with_suffix(self._trainer.file.suffix)
            with _half(file) as half:
                self._trainer.file.save(str(half))
                os.replace(half, file)
            best = BestRecord(
                epoch=epoch,
                metric=self._metric,
                value=value,
            )
            # After the file: a record of a model that is not there would be believed.
            self._folder.write_best_record(best)
            self._best = value
        except Exception as error:
            # An error of the disk or of the user's classes must not stop the run.
            traceback.print_exc()
            print(
                f"scalestudy: the model of epoch {epoch} is not kept: {error}",
                flush=True,
            )


def result_of(
    session: Session,
    records: list[EpochRecord],
    validation: dict[str, float],
    test: dict[str, float],
    chance: Chance,
    digest: str,
    usages: Sequence[Usage],
    model_missing: str | None,
) -> Result:
    """Return the result of a finished run.

    `validation` was measured with the saved weights. `usages` has one entry per process. `model_missing` is
    the reason why the model was not saved.
    """
    point = session.point
    split = session.split
    metric = session.metric
    flops = session.trainer.flops()
    # The first epoch warms caches up; a resumed one is that of two processes.
    steady = [record for record in records[1:] if not record.resumed]
    seconds = sum(record.train_seconds for record in steady)
    timing = None
    if session.timer:
        timing = session.timer.record(session)
    if timing is None:
        best = best_epoch(records, metric, session.trainer.sense)
        throughput = None
        if steady:
            throughput = sum(record.samples for record in steady) / seconds
        quality = {
            "quality": validation[metric],
            "validation": validation,
            "test": test,
            "best_quality": best.validation[metric],
            "best_epoch": best.epoch,
            "throughput": throughput,
        }
    else:
        # Its model has hardly learned, so it says nothing of quality.
        samples = timing.steps * len(split.train) / session.steps
        quality = {"throughput": samples / timing.seconds}
    gpus: list[GpuUse] = []
    gpu_percent: list[float] = []
    processes: list[ProcessUse] = []
    nodes: list[NodeUse] = []
    for rank, usage in enumerate(usages):
        uses = usage.gpu_uses(rank)
        gpus += uses
        percent = mean_percent(uses)
        if percent is not None:
            gpu_percent.append(percent)
        processes.append(ProcessUse(rank=rank, cpu_seconds=usage.cpu_seconds))
        if usage.node:
            nodes.append(NodeUse(rank=rank))
    return Result(
        **fields_of_point(point),
        communication=session.group.communication,
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
        parameters=session.trainer.state.parameters,
        precision=point.train.precision,
        weights=point.train.weights,
        input_scaling=point.train.input_scaling,
        deterministic=point.train.deterministic,
        weights_digest=digest,
        shapes_digest=session.shapes_digest,
        initial_digest=session.initial_digest,
        model_missing=model_missing,
        initial_statistics=session.initial_statistics,
        peak_memory_bytes=[int(usage.peak_memory) for usage in usages],
        cpu_percent=[usage.cpu_percent for usage in usages],
        gpu_percent=gpu_percent,
        gpus=gpus,
        processes=processes,
        nodes=nodes,
        usage_of=session.usage_of,
        flops_per_sample=flops.per_sample,
        flops_uncounted=list(flops.uncounted),
        began=session.began,
        hosts=sorted(session.hosts),
        finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def mean_percent(uses: Sequence[GpuUse]) -> float | None:
    """Return the mean utilisation of the GPUs that report it, or None if no GPU does."""
    known = [use.percent for use in uses if use.percent is not None]
    if not known:
        return None
    return sum(known) / len(known)


def best_epoch(records: list[EpochRecord], metric: str, sense: Sense) -> EpochRecord:
    """Return the first evaluated epoch with the best metric. Values that are not finite are ignored."""
    assert sense.better
    best: EpochRecord | None = None
    best_value: float | None = None
    last = None
    for record in records:
        if not record.validation:
            continue
        last = record
        value = record.validation[metric]
        if improves(value, best_value, sense.better):
            best, best_value = record, value
    # Of a run that diverged from the first epoch on, the last one.
    found = best or last
    assert found
    return found
