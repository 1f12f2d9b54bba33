"""The finished runs of a study's folder, as the analysis sees them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from scalestudy.analysis.runs import Planned, Run, read_epochs
from scalestudy.config.expand import point_name
from scalestudy.launch.launcher import PointStatus
from scalestudy.store.record_file import CHECKSUMS
from scalestudy.store.records import EpochRecord, RankRecord, Result
from scalestudy.store.run_folder import EPOCHS, GALLERY, RANKS, RunFolder

MEASURED = ("steps", "input")
"""Phases that make up the training time."""


def runs_of(status: PointStatus, study: Path) -> Iterator[Run]:
    """Yield the finished run of a point, also as that of each point with the same training.

    Damage to its records of epochs is noted, not raised, and so are records that differ from their checksums,
    which are left out.
    """
    if not status.run or not status.result:
        return
    run = as_training(_read_run(status.run, status.result, study))
    yield run
    # Points with the same training are trained once, and timed once.
    point = status.point
    for swept in point.also:
        name = point_name(point.strategy, point.workers, point.seed, swept)
        named = run.result.model_copy(update={"name": name, "swept": swept})
        yield replace(run, result=named)


def _read_run(folder: RunFolder, result: Result, study: Path) -> Run:
    altered = _altered(folder)
    epochs: tuple[EpochRecord, ...] = ()
    damage: list[str] = []
    if EPOCHS not in altered:
        epochs, damage = read_epochs(folder.path)
        if not damage and len(epochs) != result.epochs:
            damage = [f"{EPOCHS} holds {len(epochs)} of {result.epochs} epochs"]
    for name in altered:
        damage.append(f"{name} differs from its checksum in {CHECKSUMS}")
    held = folder.allocations()
    noted = folder.disturbance()
    # What was altered says nothing that can be relied on: it is left out, and named.
    ranks: tuple[RankRecord, ...] = ()
    if RANKS not in altered:
        ranks = tuple(folder.ranks())
    gallery = None
    if GALLERY not in altered:
        gallery = folder.gallery_record()
    return Run(
        result,
        epochs,
        _relative(folder, study),
        ranks=ranks,
        damage=tuple(damage),
        gallery=gallery,
        allocations=held.jobs if held else (),
        busy=noted.words if noted else None,
    )


def _altered(folder: RunFolder) -> list[str]:
    """Records beside the result that differ from their checksums; if these are damaged, none is known to."""
    # A shared folder's records may have been edited; only checksums tell.
    with suppress(OSError, ValueError):
        return folder.differing((EPOCHS, RANKS, GALLERY))
    return []


def planned_of(status: PointStatus, study: Path) -> Planned:
    """A point of the study with the state of its newest run."""
    point = status.point
    folder = None
    if status.run:
        folder = _relative(status.run, study)
    return Planned(
        name=point.name,
        strategy=point.strategy,
        workers=point.workers,
        seed=point.seed,
        state=status.state,
        swept=tuple(sorted(point.swept.items())),
        folder=folder,
        reason=status.reason or None,
    )


def _relative(run: RunFolder, study: Path) -> str:
    return str(run.path).removeprefix(f"{study}/")


def as_training(run: Run) -> Run:
    """The training that a timing run stands for, with computed times; any other run as it is.

    Start-up and compilation are the timing run's own. Steps after the warm-up take the measured step time,
    evaluations after the first take the time of the second, and the model is saved once more. Energy and
    traffic are unknown.
    """
    timing = run.result.timing
    result = run.result
    wall = run.wall_seconds
    if timing is None or result.training_seconds is None or wall is None:
        return run
    step = timing.seconds / timing.steps
    steps_left = timing.training_updates - timing.warm_up_steps
    training = timing.warm_up_seconds + steps_left * step
    # The first evaluation compiles, so the last one stands for the others.
    evaluations_left = timing.training_evaluations - len(timing.evaluations)
    evaluation = max(0, evaluations_left) * timing.evaluations[-1]
    phases = dict(result.phases)
    saving = phases.get("saving", 0.0)
    done = sum([phases.get(name, 0.0) for name in MEASURED])
    # Steps and input keep their shares of the training time.
    for name in MEASURED:
        if phases.get(name):
            phases[name] = phases[name] * training / done
    phases["evaluation"] = phases.get("evaluation", 0.0) + evaluation
    phases["saving"] = 2 * saving
    # Counters of the timing run's own minutes say nothing about a whole training.
    gpus = [use.model_copy(update={"joules": None}) for use in result.gpus]
    nodes = [type(use)(rank=use.rank) for use in result.nodes]
    computed = {
        "epochs": timing.training_epochs,
        "updates": timing.training_updates,
        "phases": phases,
        "samples_processed": timing.training_samples,
        "training_seconds": training,
        "wall_seconds": wall - result.training_seconds + training + evaluation + saving,
        "gpus": gpus,
        "nodes": nodes,
        "processes": [],
    }
    return replace(
        run,
        result=result.model_copy(update=computed),
        epochs=(),
        damage=(),
        allocations=(),
    )
