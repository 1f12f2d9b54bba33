"""One worker process's part in a run, from reading the run folder to writing the results."""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from scalestudy.data.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Joined
from scalestudy.engines.interface import Engine, engine_of
from scalestudy.hardware.cores import granted
from scalestudy.measure.heartbeat import SERVING
from scalestudy.measure.rank_environment import rank_record
from scalestudy.measure.utilisation import Utilisation
from scalestudy.plugins.engines import engine_traits
from scalestudy.store.record_file import CHECKSUMS
from scalestudy.store.run_folder import RunFolder
from scalestudy.training import gallery
from scalestudy.training.agreement import digests_of_model
from scalestudy.training.chance import Chance, measure_chance
from scalestudy.training.device_setup import (
    OwnPart,
    join_workers,
    refuse_shared_gpus,
    set_up_engine,
)
from scalestudy.training.initial_weights import begin_alike
from scalestudy.training.keeper import Keeper, StoppedError
from scalestudy.training.reporter import Reporter
from scalestudy.training.run_results import (
    BestKeeper,
    model_record_of,
    result_of,
    save_model,
    try_saving,
)
from scalestudy.training.session import Moment, Session
from scalestudy.util.errors import RunError
from scalestudy.util.registry import load
from scalestudy.util.unused_packages import without_unused

RESULT_WITHIN = 600.0
"""Seconds that the other ranks wait for rank 0 to save the model and write the result."""
LOOK_EVERY = 0.2
"""Seconds between two looks at the signs of other processes, in an asynchronous run."""


def run_synchronous(part: OwnPart) -> None:
    """Compute this rank's part of a run; rank 0 writes the records.

    The run continues from the checkpoint in its folder, if there is one. A run that is asked to stop
    writes a checkpoint and returns without a result.

    Raises:
        RunError: If the engine lists other GPUs than this process was given, or if the workers' weights
            differ at the end.
    """
    run_joined(part, *join_workers(part))


def run_asynchronous(part: OwnPart) -> None:
    """Compute this process's part of a run whose workers take no common steps.

    Rank 0 coordinates: it decides which worker computes which step, and writes the records. The others
    compute what it asks for, until it leaves.
    """
    if part.placement.rank:
        _serve(part)
        return
    with part.clock.phase("join"):
        while _serving(part.folder) < part.placement.size - 1:
            time.sleep(LOOK_EVERY)
    run_synchronous(part)
    part.folder.release()


def _serving(folder: RunFolder) -> int:
    """Return how many processes wait for what the coordinator asks of them."""
    return sum(sign.phase == SERVING for sign in folder.signs())


def _serve(part: OwnPart) -> None:
    folder = part.folder
    point = part.point
    placement = part.placement
    clock = part.clock
    traits = engine_traits(point.engine)
    threads = len(granted())
    with clock.phase("framework"), without_unused(traits.unused):
        engine = part.engine or engine_of(point.engine)
        set_up_engine(
            engine,
            point,
            threads=threads,
            device=part.device,
            gpus=part.gpus,
        )
        load(point.traits.serve)(placement, threads=threads)
    devices = engine.devices(part.device)
    build = engine.build_record()
    folder.write_rank(
        rank_record(
            placement,
            traits,
            threads=threads,
            devices=devices,
            build=build,
            unmeasured={},
        )
    )
    seen = -1
    while not folder.is_released():
        marks = 0
        for sign in folder.signs():
            if sign.rank == 0:
                marks = sign.marks
                break
        # This process only answers rank 0, so it makes progress as long as rank 0 does.
        if marks != seen:
            clock.heartbeat.enter(SERVING)
        seen = marks
        time.sleep(LOOK_EVERY)
    clock.heartbeat.enter("leaving")


def run_joined(part: OwnPart, engine: Engine, joined: Joined) -> None:
    """Compute the part of a rank that has already joined the others; see `run_synchronous`."""
    folder = part.folder
    point = part.point
    placement = part.placement
    clock = part.clock
    device = part.device
    group = joined.group
    cpus = granted()
    utilisation = Utilisation(
        len(cpus),
        part.gpus,
        node=placement.local_rank == 0,
        memory=partial(engine.gpu_memory, device),
    )
    record = rank_record(
        placement,
        engine_traits(point.engine),
        threads=len(cpus),
        devices=engine.devices(device),
        build=engine.build_record() | group.build_record(),
        unmeasured=utilisation.reasons(),
    )
    folder.write_rank(record)
    # Before NCCL would refuse it, without naming who gave two ranks one GPU.
    refuse_shared_gpus(group, record.device_uuids)
    files = point.needed_files()
    prepared = Prepared.open(files.prepared)
    split = Split.load(files.split)
    session = Session(point, engine, joined, prepared, split, clock, utilisation)
    if files.initial is not None:
        with clock.phase("build"):
            begin_alike(session.trainer, group, Path(files.initial))
    keeper = Keeper(folder, session)
    reporter = None
    if group.rank == 0:
        forget_the_last_process(folder)
        reporter = Reporter(folder, session, keeper.found())
    # A model that cannot be saved fails here, and not after hours of training.
    chance = _try(folder, session)
    if reporter:
        reporter.phase("compile")
    session.compile()
    BestKeeper(folder, session).begin(keeper.restore())
    with suppress(StoppedError):
        _train(folder, session, keeper, reporter)
        _finish(folder, session, reporter, chance)
        if reporter:
            keeper.remove()
    clock.heartbeat.enter("leaving")
    # It waits for all ranks: one that left early would abort the others' sums.
    group.close()


def _try(folder: RunFolder, session: Session) -> Chance:
    """Try saving and the metrics on rank 0 before training, so that they do not fail after it.

    Every rank enters the same phases, so that the progress marks of all ranks stay comparable.
    """
    first = session.group.rank == 0
    chance = Chance(None, 0)
    with session.clock.phase("saving"):
        if first:
            folder.write_model_record(model_record_of(session.point, session.prepared))
            session.shapes_digest, session.initial_digest = digests_of_model(
                session.trainer
            )
            try_saving(folder, session.trainer)
    with session.clock.phase("evaluation"):
        if first:
            chance = measure_chance(
                session.trainer,
                session.prepared,
                session.split.validation,
            )
    return chance


def _refuse_unequal(digests: Sequence[str]) -> None:
    if len(set(digests)) != 1:
        raise RunError(
            "equal weights on all workers at the end of the run",
            f"{len(set(digests))} different sets of weights on {len(digests)} workers",
            "A layer keeps its own state on every worker, so the model would depend on the worker that"
            " saves it.",
        )


def _finish(
    folder: RunFolder,
    session: Session,
    reporter: Reporter | None,
    chance: Chance,
) -> None:
    """Evaluate the final weights; rank 0 writes the model, the gallery and, last, the result.

    Without a result the run is not complete. A failure to save the model does not lose the result.
    """
    clock = session.clock
    test = dict[str, float]()
    if reporter:
        reporter.phase("evaluation")
    evaluated = None
    if session.timer:
        evaluated = session.timer.evaluate(session)
    with session.evaluating():
        validation = evaluated or session.validation()
        if len(session.split.test):
            test = session.measure(session.split.test)
        with clock.phase("proof"):
            digests = session.digests()
            usages = session.usages()
        # Also of processes that serve a coordinator and have no session.
        session.hosts |= {record.host for record in folder.ranks()}
        clock.heartbeat.enter("result")
        _refuse_unequal(digests)
        if reporter is None:
            with clock.phase("saving"):
                # One mark more than rank 0, which is therefore the one behind.
                clock.heartbeat.enter("waiting")
                _await_result(folder)
            return
        reporter.phase("saving")
        folder.refuse_other_job()
        missing: str | None = "a timing run keeps none"
        if session.timer is None:
            with clock.phase("saving"):
                missing = save_model(folder, session.trainer)
            gallery.save_gallery(
                folder,
                session.trainer,
                session.prepared,
                session.split.validation,
            )
        records = reporter.records
        result = result_of(
            session,
            records,
            validation,
            test,
            chance,
            digests[0],
            usages,
            missing,
        )
        # The result comes last: with it, the run is complete.
        folder.write_checksums(result)
        folder.write_result(result)


def _train(
    folder: RunFolder,
    session: Session,
    keeper: Keeper,
    reporter: Reporter | None,
) -> None:
    if reporter:
        session.restarts = reporter.restarts
        if session.point.why:
            print(f"scalestudy: {session.point.why}", flush=True)

    def watch(moment: Moment) -> None:
        if reporter:
            reporter.moment(moment)
        keeper.after_call()

    for record in session.epoch_records(watch):
        if reporter:
            reporter.epoch(record)
        # After the last epoch, callbacks may still change the weights.
        if not session.over:
            keeper.after_epoch()
    keeper.after_epoch()


def forget_the_last_process(folder: RunFolder) -> None:
    """Remove the failure record of an earlier process in this folder.

    A request to stop stays: who starts processes removes an earlier one, so it is for this process.
    """
    for name in ("failure.json", CHECKSUMS):
        (folder.path / name).unlink(missing_ok=True)


def _await_result(folder: RunFolder) -> None:
    """Wait for rank 0's result: in a ring, other ranks may still read from a rank whose sum is complete."""
    deadline = time.monotonic() + RESULT_WITHIN
    while folder.result() is None:
        if time.monotonic() > deadline:
            raise RunError(
                f"rank 0 to write its result within {RESULT_WITHIN:.0f} s of the others' end",
                "no result.json",
                "See rank 0's log, and check that all nodes see the same folder.",
            )
        time.sleep(0.05)
