"""Asynchronous runs, in which a coordinator schedules steps on workers, and servers hold the weights.

The coordinator runs the same loop and writes the same files as the process of a one-worker run. It schedules
each step and each part of an evaluation on a worker that is free. The order of samples is that of the study;
a step takes the next per-worker batch. If a signal kills a worker that the coordinator has joined, the
remaining workers do its work. If a server or the coordinator ends, the run fails.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.data.loader import Reader
from scalestudy.data.samples import leaves, map_columns
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.base import engine_of
from scalestudy.engines.group import RemoteRows
from scalestudy.hardware.cores import granted
from scalestudy.launch.failures import lost_workers, sentence
from scalestudy.measure.environment import rank_record
from scalestudy.measure.hang_detection import SERVING
from scalestudy.plugins.engines import engine_traits
from scalestudy.store.run_folder import RunFolder
from scalestudy.training.devices import OwnPart, joined_workers, set_up
from scalestudy.training.reading import read_rows, readers
from scalestudy.training.run import run_joined
from scalestudy.util.errors import RunError
from scalestudy.util.imports import without_unused
from scalestudy.util.registry import loaded

LOOK_EVERY = 0.5
"""Seconds between two checks whether a process has ended or the run is complete."""


def run(part: OwnPart) -> None:
    """Compute this process's part of an asynchronous run; see `training.run.run`.

    Raises:
        RunError: If a server or the coordinator has ended, or any process during start-up.
    """
    if part.placement.role == "coordinator":
        _coordinate(part)
    else:
        _serve(part)


def _coordinate(part: OwnPart) -> None:
    folder, point = part.folder, part.point
    prepared = Prepared.open(point.needed_files().prepared)
    with part.clock.phase("join"):
        while len([sign for sign in folder.signs() if sign.phase == SERVING]) < part.placement.size - 1:
            _refuse_lost(folder)
            time.sleep(LOOK_EVERY)
    engine, joined = joined_workers(part)
    folder.joined.touch()
    changed, plain = readers(point, prepared)
    joined.replicas.remote = RemoteRows(
        _forms(prepared, changed),
        _forms(prepared, plain),
        watch=lambda: _refuse_lost(folder),
    )
    run_joined(part, engine, joined)
    folder.let_go()


def _serve(part: OwnPart) -> None:
    folder, point, placement, clock = part.folder, part.point, part.placement, part.clock
    prepared, threads = Prepared.open(point.needed_files().prepared), len(granted())
    changed, plain = readers(point, prepared)

    def read(rows: NDArray[np.int64], epochs: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Return the arrays of the inputs, then of the targets, in the order of `rows`."""
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
        if (written := folder.sign_written(coordinator)) != seen:  # the coordinator is alive
            clock.heart.enter(SERVING)
            seen = written
        time.sleep(LOOK_EVERY)
    clock.heart.enter("leaving")


def _forms(prepared: Prepared, reader: Reader) -> tuple[Any, Any]:
    """Return shape and type of an input and of a target, or dicts of them; None in a shape is any length."""
    if not (prepared.has_sequences and prepared.columns):
        return reader.forms(np.arange(1))
    inputs, targets = (
        map_columns(lambda column: (column.shape, np.dtype(column.dtype)), side) for side in prepared.columns
    )
    return inputs, targets


def _ended(folder: RunFolder) -> list[str]:
    """Describe how required processes ended: all but lost workers and those that stopped on request."""
    lost, point = {cause.rank for cause in lost_workers(folder)}, folder.point()
    ends = [cause for cause in folder.causes() if cause.kind != "stopped" and cause.rank not in lost]
    return [sentence(cause, point=point) for cause in ends]


def _refuse_lost(folder: RunFolder) -> None:
    """Raise RunError if a required process has ended; until all have joined, all processes are required."""
    if gone := _ended(folder):
        raise RunError(
            "the workers and servers to stay available",
            "; ".join(gone),
            "Run it again: it continues from its checkpoint if there is one.",
        )
