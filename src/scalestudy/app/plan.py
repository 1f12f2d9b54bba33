"""A study before it is started: its points, their states, and which of them to run."""

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.app.follow import Listener
from scalestudy.app.prepare import (
    NotPreparedError,
    look_at_data,
    prepare_ahead,
    prepare_points,
    refuse_results_inside,
    with_task_data,
)
from scalestudy.app.task_checks import known_classes, refuse_unusable
from scalestudy.config.file import Study
from scalestudy.config.parse import load_study
from scalestudy.config.point import Point
from scalestudy.config.run_order import RunOrder
from scalestudy.config.toml_text import read_text
from scalestudy.launch.launcher import Launcher, Options, Overview, launcher_of
from scalestudy.launch.study_status import study_status
from scalestudy.store.study_folder import StudyFolder, default_folder
from scalestudy.store.trained_code import add_trained
from scalestudy.util.errors import UserError
from scalestudy.util.text import plural

INITIAL = "initial"
"""Folder of initial weights in a study's folder."""

if TYPE_CHECKING:
    from scalestudy.data.samples import Kind


@dataclass(frozen=True)
class Request:
    """A study to run or submit: relative paths start at `base`, results go to `target`."""

    study: Study
    text: str
    base: Path
    target: Path

    def planning(self, **plan: int | None) -> "Request":
        """This study for another plan: the keys of [plan] that are not None."""
        given = {key: value for key, value in plan.items() if value is not None}
        plan_now = self.study.plan.model_copy(update=given)
        study = self.study.model_copy(update={"plan": plan_now})
        return replace(self, study=study)


def request_of(
    file: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> Request:
    """Read a study file; if `out` is None, results go to studies/NAME beside it.

    Raises:
        UserError: Something in the file is wrong; the error names the line.
    """
    path = Path(file)
    study = load_study(path)
    if out is None:
        target = default_folder(path, study.name)
    else:
        target = Path(out)
    return Request(study, read_text(path), path.parent, target)


@dataclass(frozen=True)
class Plan:
    """A study that can be started, including its task's source of data.

    `points` are its points for the launcher, row by row; `existing` is the results folder, if there was one
    when the plan was made.
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

    def with_points(self, points: Sequence[Point], overview: Overview) -> "Plan":
        """This plan for other points of its study; `overview` has the states of those that may be run.

        What was prepared for one plan is prepared for the other, too.
        """
        return replace(self, points=list(points), overview=overview)

    def results(self) -> StudyFolder | None:
        """The results folder as it is now; None if there is none yet."""
        target = self.request.target
        if not (target / "study.json").exists():
            return None
        return StudyFolder.open(target)

    def todo(self) -> list[Point]:
        """The points to run, in the order of their runs."""
        return self.in_order(self.to_run(self.overview))

    def to_run(self, overview: Overview) -> set[str]:
        """Names of the points to run."""
        # Only on request: another training costs as much, and is disturbed again while the others compute.
        again = overview.disturbed if self.options.repeat else []
        return {status.name for status in (*overview.runnable, *again)}

    def in_order(self, names: Set[str]) -> list[Point]:
        """The points with these names, in the order of their runs."""
        arranged = self.order.arrange(self.points)
        return [point for point in arranged if point.name in names]

    def ready(self, points: Sequence[Point], listener: Listener) -> Mapping[str, Point]:
        """Return these points by name, in their order, with their data, each of which is prepared only once.

        Raises:
            UserError: A data set cannot be prepared, or must be prepared in advance and is not.
        """
        # With --until, one plan starts several batches of points.
        fresh = [point for point in points if point.name not in self._ready]
        find = prepare_points
        if self.launcher.detached:
            find = prepare_ahead
        added = find(fresh, self._kind, self.request.base, self.study, listener)
        engines = {point.engine for point in self.points}
        # Engines draw different initial weights from one seed, which would be compared too.
        if len(engines) > 1:
            folder = self.request.target.absolute() / INITIAL
            self._note_other_beginnings(folder, added, listener)
            added = [point.beginning_in(str(folder)) for point in added]
        for point in added:
            self._ready[point.name] = point
        return {point.name: self._ready[point.name] for point in points}

    def _note_other_beginnings(
        self,
        folder: Path,
        added: Sequence[Point],
        listener: Listener,
    ) -> None:
        before = set()
        for status in self.overview.points:
            if status.result:
                before.add(status.point.engine)
        joining = {point.engine for point in added} - before
        if before and joining and not folder.is_dir():
            listener.note(
                f"The runs of {', '.join(sorted(before))} in this folder did not store their initial weights,"
                f" so those of {', '.join(sorted(joining))} may begin with others. To compare the engines,"
                " repeat all runs in another folder (--out)."
            )

    def dry_run_points(
        self,
        points: Sequence[Point],
        listener: Listener,
    ) -> Mapping[str, Point]:
        """Return these points by name for a dry run, with their data if already prepared.

        In either case, files that the sources leave out are reported.

        Raises:
            UserError: Their data are visibly unsuitable.
        """
        if self.launcher.detached:
            try:
                return self.ready(points, listener)
            except NotPreparedError as error:
                action = error.action[:1].lower() + error.action[1:]
                listener.note(f"{error.received}. Before it is submitted, {action}")
        look_at_data(points, self._kind, self.request.base, self.study, listener)
        self._note_unchecked(points, listener)
        return {point.name: point for point in points}

    def _note_unchecked(self, points: Sequence[Point], listener: Listener) -> None:
        """Say that the number of class weights is checked only once the data is read."""
        for point in points:
            # "balanced" weights have a number for each class by themselves.
            weighted = isinstance(point.train.class_weights, tuple)
            if weighted and known_classes(point, self._kind, self.request.base) is None:
                listener.note(
                    "Not checked: whether class_weights has a number for each class of the data, which is "
                    "not prepared. A run checks it before anything is trained."
                )
                return

    def folder(self) -> StudyFolder:
        """Create or open the results folder."""
        # Points of one task share one dictionary of sources: each file is noted once.
        distinct = {id(point.sources): point for point in self.points}
        for point in distinct.values():
            add_trained(point.task, point.sources)
        return StudyFolder.create_or_open(
            self.request.target,
            self.study,
            self.points,
            self.request.text,
            self.order,
        )


def _note_unused_workers(
    study: Study,
    points: Sequence[Point],
    listener: Listener,
) -> None:
    # Numbers that the user did not write are a default, which strategies may well not use.
    if "workers" not in study.sweep.model_fields_set:
        return
    used = {point.workers for point in points}
    unused = sorted(set(study.sweep.workers) - used)
    if unused:
        numbers = ", ".join(map(str, unused))
        strategies = ", ".join(map(str, study.sweep.strategy))
        listener.note(f"No point has {numbers} workers: {strategies} cannot use them.")


def _installed(
    launcher: Launcher,
    points: list[Point],
    listener: Listener,
) -> list[Point]:
    """Leave out points whose engine or library is not installed here, unless none would be left."""
    # What is installed on the nodes of a queue is not known here.
    if launcher.detached:
        return points
    by_software: dict[tuple[str, str | None], list[Point]] = {}
    for point in points:
        software = point.engine, point.traits.library
        by_software.setdefault(software, []).append(point)
    missing: dict[tuple[str, str | None], UserError] = {}
    for software, alike in by_software.items():
        one = alike[-1]
        try:
            launcher.refuse([one])
        except UserError as error:
            # A wrong environment is a mistake, which is refused later.
            if one.environment is None:
                missing[software] = error
    left = []
    for point in points:
        if (point.engine, point.traits.library) not in missing:
            left.append(point)
    # With nothing left, the error of what is missing says more.
    if not left:
        return points
    for software, lacking in missing.items():
        out = by_software[software]
        strategies = [point.strategy for point in out]
        names = " and ".join(dict.fromkeys(strategies))
        count = f"{len(out)} {plural('point', len(out))}"
        listener.note(
            f"Left out: {count} of {names}. Not installed: {lacking.expected}. {lacking.action}"
        )
    return left


def plan_study(
    request: Request,
    options: Options | None = None,
    *,
    dry: bool = False,
    listener: Listener | None = None,
) -> Plan:
    """Check the task, the site, the points and the folder, before data and queue are needed.

    For a `dry` run, a queue need not answer, and its answers are not recorded.

    Raises:
        UserError: The first thing that is wrong. Nothing is written.
    """
    options = replace(options or Options(), base=request.base)
    launcher = launcher_of(request.study)
    if options.at_most is not None and not launcher.detached:
        raise UserError(
            "a study in a queue for --at-most, which limits its jobs",
            f'launch.on = "{request.study.launch.on}", whose points run one after another'
            f"{request.study.place.of('launch.on')}",
            "Leave --at-most out.",
        )
    study, kind = with_task_data(request.study)
    points = _installed(
        launcher,
        launcher.points(study, options),
        listener or Listener(),
    )
    if listener is not None:
        _note_unused_workers(study, points, listener)
    for point in points:
        refuse_unusable(
            point,
            study,
            request.base,
            classes=known_classes(point, kind, request.base),
        )
    refuse_results_inside(points, request.base, request.target)
    existing = StudyFolder.check(request.target, study, points)
    if existing:
        order = existing.order
        overview = study_status(
            existing,
            must=launcher.detached and not dry,
            record=not dry,
        )
    else:
        order, overview = RunOrder.drawn_from(request.text), Overview([])
    return Plan(
        request,
        study,
        launcher,
        options,
        points,
        order,
        existing,
        overview.over(points),
        kind,
    )
