"""Choose the point to diagnose, and the data that it is diagnosed with."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scalestudy.analysis.findings import Findings, read_study
from scalestudy.analysis.runs import Key, key_of
from scalestudy.config.point import Point
from scalestudy.config.settings import DEFAULT_LAUNCHER
from scalestudy.data.store.prepared import Prepared
from scalestudy.launch.launcher import launcher
from scalestudy.launch.reserve import refuse_open_ports
from scalestudy.store.permission import NOTHING, Permission, permit_point
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError
from scalestudy.util.text import elide


class DiagnosisPlan(NamedTuple):
    """The plan of a diagnosis: a point with its data, the findings of its study, and why it was chosen."""

    target: Path
    point: Point
    findings: Findings
    why: str = ""


def plan_diagnosis(
    folder: StudyFolder,
    name: str | None,
    permission: Permission = NOTHING,
) -> DiagnosisPlan:
    """Find the point, by its name or with `choose_point`, and the data of a run that has started.

    Raises:
        UserError: If there is no such point, it cannot be diagnosed here, or its code may not run.
    """
    findings = read_study(folder)
    points = folder.points()
    if any(run.result.by_script for run in findings.runs):
        raise UserError(
            "a study of a task, whose steps can be analysed",
            f"{folder.path}, whose runs were trained by a script",
            "Write the script's model as a task: `scalestudy docs reference/task-file`.",
        )
    if name is None:
        point, why = choose_point(points, findings)
    else:
        point = named_point(points, name)
        why = ""
    if point.launch.on != DEFAULT_LAUNCHER:
        raise UserError(
            "a study whose points run on this machine",
            f'{point.name} of launch.on = "{point.launch.on}"',
            f'Run the point with launch.on = "{DEFAULT_LAUNCHER}" on a node that holds all its workers.',
        )
    # A study is data: its task file runs only if this user has trained with it, or names it.
    permitted = permit_point(_with_files(folder, point), permission)
    launcher(DEFAULT_LAUNCHER).refuse([permitted])
    refuse_open_ports([permitted])
    return DiagnosisPlan(folder.path, permitted, findings, why)


def named_point(points: Sequence[Point], name: str) -> Point:
    """Return the point with this name.

    Raises:
        UserError: If there is none, or its efficiency is not defined.
    """
    several = {point.name: point for point in points if _loses_efficiency(point)}
    # A row that was only timed is named as every other: the timing run has the settings of the training.
    timed = f"{name}-timing"
    if name not in several and timed in several:
        return several[timed]
    if name not in several:
        known = elide(list(several), 8)
        wanted = "a point of several workers that compute each step at the same time"
        raise UserError(wanted, repr(name), f"Name one of: {known or 'none'}.")
    return several[name]


def _loses_efficiency(point: Point) -> bool:
    """Return whether several workers compute each step together and at the same time."""
    return point.workers > 1 and point.traits.has_speed_up


def choose_point(points: Sequence[Point], findings: Findings) -> tuple[Point, str]:
    """Return the most informative point, and why it was chosen.

    This is the point with the next larger number of workers than advised, which shows why more workers do not
    pay. If there is none, it is the largest measured point, or else the largest point.

    Raises:
        UserError: If no point has several workers.
    """
    several = []
    for point in points:
        if _loses_efficiency(point) and not point.oversubscribed:
            several.append(point)
    if not several:
        raise UserError(
            "a study with a point of several workers that is not oversubscribed",
            "none",
            "Sweep numbers of workers from 2 up to that of the machine's cores or GPUs.",
        )
    # Of the largest points, the one with the first seed comes last.
    by_size = sorted(several, key=lambda point: (point.workers, -point.seed))
    choice = findings.advice.choice
    if choice:
        larger = []
        for point in by_size:
            is_larger = point.workers > choice.workers
            if is_larger and _key(point) == choice.key.on(point.workers):
                larger.append(point)
        if larger:
            first = min(larger, key=lambda point: (point.workers, point.seed))
            return first, f"the next larger count than is advised ({choice.key.label})"
    done = {row.key for row in findings.rows}
    measured = [point for point in by_size if _key(point) in done]
    if measured:
        return measured[-1], "the largest that the study has measured"
    return by_size[-1], "the largest of the study"


def _key(point: Point) -> Key:
    return key_of(point.strategy, point.workers, point.swept)


def _with_files(folder: StudyFolder, point: Point) -> Point:
    """Return the point with the data files of one of its runs, or of another point's run on the same data."""
    same_data = [other for other in folder.points() if other.data == point.data]
    # The point's own runs come first, and of each point the latest.
    same_data.sort(key=lambda other: other.name != point.name)
    for candidate in same_data:
        for run in reversed(folder.runs(candidate.name)):
            # A run may be damaged, or its data may have been removed since.
            with contextlib.suppress(UserError):
                files = run.point().files
                if files is None:
                    continue
                Prepared.open(files.prepared)
                return point.with_files(
                    files.prepared,
                    files.split,
                    files.class_weights,
                )
    raise UserError(
        "a study with a run that has started",
        f"{folder.path}, without a run on the data of {point.name}",
        "Run its study file first: scalestudy run.",
    )
