"""Checks of a task before its points start: settings that fit its data, its file, and its weights."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scalestudy.app.follow import Listener
from scalestudy.config.catalog import is_ours, task_file
from scalestudy.config.file import Study
from scalestudy.config.objectives import (
    loss_terms,
    metric_term,
    refuse_unfit,
    refuse_unweighted,
)
from scalestudy.config.point import Point
from scalestudy.data.preparation import find_set
from scalestudy.data.samples import Kind
from scalestudy.data.sources.paths import cache_folder
from scalestudy.data.sources.source import digest
from scalestudy.data.store.prepared import Prepared
from scalestudy.launch.environments import build_task, starts
from scalestudy.plugins.engines import engine_traits
from scalestudy.util.errors import UserError


def refuse_unusable(
    point: Point,
    study: Study,
    base: Path,
    *,
    classes: int | None = None,
) -> None:
    """Refuse settings that cannot work.

    Args:
        point: The point.
        study: Its study.
        base: Folder that paths are relative to.
        classes: Number of classes of its data; None if they are not prepared.

    Raises:
        UserError: Names the key, its line, and a remedy.
    """
    train, place = point.train, study.place
    if train.metrics:
        refuse_unfit(
            map(metric_term, train.metrics),
            classes,
            place.of("train.metrics"),
        )
    weights = train.class_weights
    if train.loss and weights:
        refuse_unweighted(loss_terms(train.loss), place.of("train.loss"))
    if isinstance(weights, tuple):
        # With all weights 0, the loss is 0 for every model.
        fits = any(weights)
        expected = "weights above 0"
        if classes:
            fits = fits and len(weights) == classes
            expected = f"{classes} class weights, some above 0, one for each class"
        if not fits:
            raise UserError(
                expected,
                f"{list(weights)}{place.of('train.class_weights')}",
                'Correct class_weights under [train], or write "balanced".',
            )
    known = (None, "none", "imagenet")
    if train.weights not in known and not Path(train.weights).is_file():
        raise UserError(
            'a file of weights, "imagenet" or "none" as weights',
            f"{train.weights}, which is no file{place.of('train.weights')}",
            "Correct the path. It is relative to the study file.",
        )
    _refuse_unwritable_cache(cache_folder(point.data.cache, base).absolute(), study)


def _refuse_unwritable_cache(cache: Path, study: Study) -> None:
    """Refuse a cache that cannot be made, before the data are read for it."""
    there = cache
    while not there.exists():
        there = there.parent
    why = ""
    # Where nothing can be stored, as in /proc, there are no blocks.
    if not there.is_dir() or os.statvfs(there).f_blocks == 0:
        why = "no folder on a disk"
    elif not os.access(there, os.W_OK | os.X_OK):
        why = "not writable"
    if why:
        raise UserError(
            "a writable folder for prepared data as data.cache",
            f"{cache}: {there} is {why}{study.place.of('data.cache')}",
            'Name another folder under [data]: cache = "PATH".',
        )


def known_classes(point: Point, kind: Kind | None, base: Path) -> int | None:
    """Return the number of classes of a point that has class weights, if its source tells it unread, or None.

    Raises:
        UserError: The source is missing, or does not suit the task.
    """
    if not isinstance(point.train.class_weights, tuple):
        return None
    planned = find_set(point.data, task_kind=kind, base=base)
    prepared = planned.prepared()
    if prepared is not None:
        return prepared.classes
    # Few sources can tell without reading their samples.
    return getattr(planned.source, "known_classes", None)


def fetch_weights(
    point: Point,
    prepared: str,
    listener: Listener,
    *,
    again: bool = False,
) -> None:
    """Build a point's model once, to download pretrained weights, unless its task is built in and has none.

    Without the framework, this is only noted: weights may have been fetched on another machine. The model is
    built for the data set in `prepared`. With `again`, it is built even if it was built before.

    Raises:
        UserError: The model cannot be built.
    """
    stamp = _stamp(point, prepared)
    if stamp is None:
        return
    if stamp.exists() and not again:
        return
    if _cannot_build(point, listener):
        return
    # Here, not in the workers, which would all download at once.
    what = f"Building the model of {Path(point.task).name} once, for its weights"
    with listener.progress(what):
        notes = _build(point, prepared=prepared)
    for note in notes:
        listener.note(note)
    # Only now: a build that failed is tried again.
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()


def check_task_files(points: Iterable[Point], listener: Listener) -> None:
    """Import the task files of points, and check what needs no data; nothing is built, fetched or written.

    Points with their data were tried with them. Without the framework nothing is checked.

    Raises:
        UserError: If a file cannot be imported, or does not define what a task needs.
    """
    # One point for each combination of what decides which names of the file are needed.
    distinct: dict[tuple[object, ...], Point] = {}
    for point in points:
        if point.files is not None or is_ours(point.task):
            continue
        own_loss = point.train.loss is None
        own_metrics = point.train.metrics is None
        distinct[point.engine, point.environment, own_loss, own_metrics] = point
    for point in distinct.values():
        if not _is_here(point):
            continue
        label = engine_traits(point.engine).label
        with listener.progress(f"Importing {Path(point.task).name} and {label}"):
            _build(point)


def refuse_missing_weights(
    point: Point,
    prepared: str,
    command: str,
    listener: Listener,
) -> None:
    """Refuse a task whose model was never built here: jobs do not download weights, and they may be missing.

    Without the framework, this is only noted.

    Raises:
        UserError: The error gives the command that builds the model.
    """
    stamp = _stamp(point, prepared)
    if stamp is None or stamp.exists() or _cannot_build(point, listener):
        return
    raise UserError(
        "a task whose model has been built here, so that its weights are present: jobs do not download",
        f"{point.task}, not built yet or changed since",
        f"Run here: {command}",
    )


def _build(point: Point, **more: str) -> tuple[str, ...]:
    asked: dict[str, Any] = {
        **more,
        "train": point.train.model_dump(mode="json"),
        "engine": point.engine,
    }
    return build_task(
        point.task,
        asked,
        point.launch.progress_timeout,
        point.environment,
    )


def _cannot_build(point: Point, listener: Listener) -> bool:
    if _is_here(point):
        return False
    label = engine_traits(point.engine).label
    listener.note(
        f"Note: no {label} here, so the model of {point.task} was not built. If it takes pretrained "
        f"weights, run `scalestudy data prepare` again where {label} is."
    )
    return True


def _is_here(point: Point) -> bool:
    # Its software is not this process's.
    if point.environment:
        return starts(point.environment)
    return engine_traits(point.engine).missing_software() is None


def _stamp(point: Point, prepared: str) -> Path | None:
    """File whose presence means: built, with this task file, for such data, and this folder of weights.

    None for built-in tasks that start without weights: they need not be built in advance.
    """
    task, train = point.task, point.train
    if is_ours(task) and train.weights in (None, "none") and not train.frozen_epochs:
        return None
    # Its text, since an edited file may build a model with other weights.
    try:
        text = task_file(task).read_bytes()
    except OSError:
        text = b""
    data = Prepared.open(prepared)
    info = {
        "kind": data.kind,
        "input_shape": data.input_shape,
        "classes": data.classes,
        "ignore": data.ignore,
        "columns": data.columns,
        "train": {"weights": train.weights, "input_scaling": train.input_scaling},
    }
    home = engine_traits(point.engine).weights_folder(os.environ)
    name = digest("built and tried", task, text, sorted(info.items()), home)[:16]
    return cache_folder(None) / "weights" / name
