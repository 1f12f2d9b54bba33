"""A run whose workers take no step together: a coordinator runs it, workers and servers serve that.

The coordinator is to the run what its only process is to one of a single worker: it goes through the same
loop, writes the same files, and has each step, and each part of an evaluation, computed by whichever worker
is free. The order of samples is the study's; a step takes the next batch of one worker. A worker that is
ended by a signal is lost, and the others do its work; nothing goes on without a server or the coordinator.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.data.columns import leaves, map_columns
from scalestudy.data.loading.reader import Reader
from scalestudy.data.splits.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.base import engine_of
from scalestudy.engines.group import RemoteRows
from scalestudy.hardware.cores import granted
from scalestudy.launch.failures import lost_workers, sentence
from scalestudy.measure.environment import rank_record
from scalestudy.measure.hang_detection import SERVING
from scalestudy.study.engines import engine_traits
from scalestudy.study.run_folder import RunFolder
from scalestudy.training.devices import OwnPart, joined_workers, set_up
from scalestudy.training.reading import read_rows, readers
from scalestudy.training.run import run_joined
from scalestudy.util.errors import RunError
from scalestudy.util.imports import without_unused
from scalestudy.util.registry import loaded

LOOK_EVERY = 0.5
"""Seconds between two looks of a process that serves."""


def run(part: OwnPart) -> None:
    """Compute a run's part of this process, as `training.run.run` does.

    Raises:
        RunError: If a process has failed that the others cannot do without.
    """
    if part.placement.role == "coordinator":
        _coordinate(part)
    else:
        _serve(part)


def _coordinate(part: OwnPart) -> None:
    folder, point = part.folder, part.point
    files = point.needed_files()
    prepared, split = Prepared.open(files.prepared), Split.load(files.split)
    with part.clock.phase("join"):
        while len([sign for sign in folder.signs() if sign.phase == SERVING]) < part.placement.size - 1:
            _refuse_lost(folder, starting=True)
            time.sleep(LOOK_EVERY)
    engine, joined = joined_workers(part)
    changed, plain = readers(point, prepared, split.train)
    joined.replicas.remote = RemoteRows(
        _forms(prepared, changed), _forms(prepared, plain),
        watch=lambda: _refuse_lost(folder),
    )  # fmt: skip
    run_joined(part, engine, joined, lost=lambda: len(lost_workers(folder)))
    folder.let_go()


def _serve(part: OwnPart) -> None:
    folder, point, placement, clock = part.folder, part.point, part.placement, part.clock
    files, threads = point.needed_files(), len(granted())
    prepared, split = Prepared.open(files.prepared), Split.load(files.split)
    changed, plain = readers(point, prepared, split.train)

    def read(rows: NDArray[np.int64], epochs: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Inputs, then targets, of rows in their order."""
        epoch = int(epochs[0])
        columns = read_rows(prepared, rows, *((plain, None) if epoch < 0 else (changed, epoch)))
        return [array for side in columns for array in leaves(side)]

    traits = engine_traits(point.engine)
    with clock.phase("framework"), without_unused(traits.unused):
        engine = part.engine or engine_of(point.engine)
        set_up(engine, point, threads=threads, device=part.device, gpus=part.gpus)
        loaded(point.traits.serve)(placement, read, threads=threads)
    devices, build = engine.devices(part.device), engine.build_record()
    folder.write_rank(
        rank_record(placement, traits, threads=threads, devices=devices, build=build, unmeasured={})
    )
    coordinator, seen = placement.roles.index("coordinator"), -1
    while not folder.has_let_go() and not _ended(folder):
        if (written := folder.sign_written(coordinator)) != seen:  # else it may be stopped, or its node gone
            clock.heart.enter(SERVING)
            seen = written
        time.sleep(LOOK_EVERY)
    clock.heart.enter("leaving")


def _forms(prepared: Prepared, reader: Reader) -> tuple[Any, Any]:
    """Shape and type of one input and of one target, or of several by name; None in shapes is any length."""
    if not (prepared.has_sequences and prepared.columns):
        return reader.forms(np.arange(1))
    inputs, targets = (
        map_columns(lambda column: (column.shape, np.dtype(column.dtype)), side) for side in prepared.columns
    )
    return inputs, targets


def _ended(folder: RunFolder) -> list[str]:
    """How processes ended that the others cannot do without; one that is stopped may go on."""
    lost, point = {cause.rank for cause in lost_workers(folder)}, folder.point()
    ends = [cause for cause in folder.causes() if cause.kind != "stopped" and cause.rank not in lost]
    return [sentence(cause, point=point) for cause in ends]


def _refuse_lost(folder: RunFolder, *, starting: bool = False) -> None:
    """Raise RunError if a process has ended that is needed: at the start, any."""
    gone = _ended(folder) or [sentence(cause) for cause in lost_workers(folder) if starting]
    if gone:
        raise RunError(
            "the workers and servers to stay available",
            "; ".join(gone),
            "Run it again: it continues from its checkpoint if there is one.",
        )
