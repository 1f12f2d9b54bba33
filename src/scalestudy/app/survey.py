"""A study before anything of it is started: its points, how they stand, and which are to be run."""

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.app.listener import Listener
from scalestudy.app.prepare import (
    NotPreparedError,
    look_at_data,
    prepared,
    prepared_ahead,
    refuse_results_inside,
    with_task_data,
)
from scalestudy.app.unusable import refuse_unusable
from scalestudy.launch.base import Launcher, Options, Overview, launcher_of
from scalestudy.launch.status import study_status
from scalestudy.study.expand import RunOrder
from scalestudy.study.file import Study, read_text
from scalestudy.study.parse import load_study
from scalestudy.study.point import Point
from scalestudy.study.store import StudyFolder, default_folder

if TYPE_CHECKING:
    from scalestudy.data.sources.registry import Kind


@dataclass(frozen=True)
class Request:
    """A study to run or submit: relative paths are seen from `base`, results go to `target`."""

    study: Study
    text: str
    base: Path
    target: Path


def request_of(file: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Request:
    """The study of a file; the results folder is studies/NAME beside it when `out` is None.

    Raises:
        UserError: Naming the line of whatever is not right.
    """
    path = Path(file)
    study = load_study(path)
    target = Path(out) if out is not None else default_folder(path, study.name)
    return Request(study, read_text(path), path.parent, target)


@dataclass
class Survey:
    """A study that can be started, its task's source of data filled in.

    `points` can be run by the launcher, row by row; `existing` is the results folder, if it was made before.
    """

    request: Request
    study: Study
    launcher: Launcher
    options: Options
    points: list[Point]
    order: RunOrder
    existing: StudyFolder | None
    overview: Overview
    _kind: "Kind | None"
    _ready: dict[str, Point] = field(default_factory=dict)

    def todo(self) -> list[Point]:
        """The points to be run, in the order of their runs."""
        return self.in_order({status.name for status in self.overview.runnable})

    def in_order(self, names: Set[str]) -> list[Point]:
        """The points of these names, in the order of their runs."""
        return [point for point in self.order.arrange(self.points) if point.name in names]

    def ready(self, points: Sequence[Point], listener: Listener) -> Mapping[str, Point]:
        """These points by name, in their order, with their data; what was ready is not looked at again.

        Raises:
            UserError: If a data set cannot be prepared, or is not prepared where it has to be ahead.
        """
        fresh = [point for point in points if point.name not in self._ready]
        find = prepared_ahead if self.launcher.detached else prepared
        added = find(fresh, self._kind, self.request.base, self.request.study.place, listener)
        self._ready |= {point.name: point for point in added}
        return {point.name: self._ready[point.name] for point in points}

    def foreseen(self, points: Sequence[Point], listener: Listener) -> Mapping[str, Point]:
        """These points by name, to show what they would be: with their data as far as it is prepared.

        What their sources leave out is told either way.

        Raises:
            UserError: If their data can be seen not to do.
        """
        if self.launcher.detached:
            try:
                return self.ready(points, listener)
            except NotPreparedError as error:
                action = error.action[:1].lower() + error.action[1:]
                listener.note(f"{error.received}. Before it is submitted, {action}")
        look_at_data(points, self._kind, self.request.base, self.study.place, listener)
        return {point.name: point for point in points}

    def folder(self) -> StudyFolder:
        """The results folder, made or opened."""
        return StudyFolder.create_or_open(
            self.request.target, self.study, self.points, self.request.text, self.order
        )


def _note_unused_workers(study: Study, points: Sequence[Point], listener: Listener) -> None:
    """Name the numbers of workers that the study file asks for and no strategy of it can use."""
    asked = study.sweep.workers if "workers" in study.sweep.model_fields_set else ()
    if unused := sorted({*asked} - {point.workers for point in points}):
        numbers, strategies = (", ".join(map(str, values)) for values in (unused, study.sweep.strategy))
        listener.note(f"No point has {numbers} workers: {strategies} cannot use them.")


def survey(
    request: Request, options: Options | None = None, *, must: bool = True, listener: Listener | None = None
) -> Survey:
    """Check what can be known before data and queue: the task, the site, the points, the folder.

    `must` says whether a queue has to answer.

    Raises:
        UserError: Naming the first thing that is not right. Nothing is written.
    """
    options = replace(options or Options(), base=request.base)
    launcher = launcher_of(request.study)
    study, kind = with_task_data(request.study, listener)
    points = launcher.points(study, options)
    if listener is not None:
        _note_unused_workers(study, points, listener)
    for point in points:
        refuse_unusable(point, kind, study.place, request.base)
    refuse_results_inside(points, request.base, request.target)
    existing = StudyFolder.check(request.target, study, points)
    order = existing.order if existing else RunOrder.drawn_from(request.text)
    if options.order is not None:
        order = order.model_copy(update={"by": options.order})
    overview = study_status(existing, must=must and launcher.detached) if existing else Overview([])
    return Survey(request, study, launcher, options, points, order, existing, overview.over(points), kind)
