"""What is diagnosed: the point and its data, and whether that is possible here."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.read import read_study
from scalestudy.analysis.runs import Key, key_of
from scalestudy.data.store.prepared import Prepared
from scalestudy.features.diagnose.records import BlockName
from scalestudy.launch.base import launcher
from scalestudy.study.launchers import DEFAULT
from scalestudy.study.point import Point
from scalestudy.study.store import StudyFolder
from scalestudy.util import units
from scalestudy.util.errors import UserError

JOINED: tuple[BlockName, ...] = ("whole", "without input", "without exchange")
"""Blocks of the point's own processes."""
ALONE: tuple[BlockName, ...] = ("alone", "full", "reference")
"""Blocks of the first worker's process, before it computes together with the others'."""
KINDS = len(JOINED) + len(ALONE) + 1
TURNS = 3
"""Times that a round measures each kind of block, so that what else the node does affects all of them."""
WARM = 2
"""Calls before a block is timed: the first may compile."""
FEWEST, MOST = 4, 400
"""Calls of a block."""


@dataclass(frozen=True)
class DiagnosisPlan:
    """What is diagnosed.

    Attributes:
        target: The study's folder.
        point: With its data.
        findings: What the study has measured.
        why: Why it is this point; "" where it was named.
    """

    target: Path
    point: Point
    findings: Findings
    why: str = ""

    def duration(self, rounds: int, seconds: float) -> str:
        """How long all rounds take at least, in words."""
        return (
            f"at least {units.duration(rounds * KINDS * seconds)} of steps; starting and compiling the "
            f"workers {2 * rounds} times comes on top, and is known after the first round"
        )


def plan(folder: StudyFolder, name: str | None) -> DiagnosisPlan:
    """Find the point, by its name or as `choose_point` does, and the data of a run that has begun.

    Raises:
        UserError: If there is no such point, or it cannot be diagnosed here.
    """
    findings, points = read_study(folder), folder.points()
    point, why = choose_point(points, findings) if name is None else (named_point(points, name), "")
    if point.launch.on != DEFAULT:
        raise UserError(
            "a study whose points run on this machine",
            f'{point.name} of launch.on = "{point.launch.on}"',
            f'Run the point with launch.on = "{DEFAULT}" on a node that holds all its workers.',
        )
    launcher(DEFAULT).refuse([point])
    return DiagnosisPlan(folder.path, _with_files(folder, point), findings, why)


def named_point(points: Sequence[Point], name: str) -> Point:
    """The point of this name.

    Raises:
        UserError: If there is none, or if it can lose no efficiency.
    """
    several = {point.name: point for point in points if point.workers > 1 and point.traits.timed}
    if name not in several:
        known = ", ".join(list(several)[:8]) + ", …" * (len(several) > 8)
        wanted = "a point of several workers that compute at the same time"
        raise UserError(wanted, repr(name), f"Name one of: {known or 'none'}.")
    return several[name]


def choose_point(points: Sequence[Point], findings: Findings) -> tuple[Point, str]:
    """The point that a decision depends on, and why it is that one.

    Beyond the advised count, efficiency is lost that the advice would not pay for: its next larger neighbour
    says why. Without advice, or beyond it, the largest that was measured, else the largest there is.

    Raises:
        UserError: If there is none of several workers.
    """
    several = [
        point for point in points if point.workers > 1 and point.traits.timed and not point.oversubscribed
    ]
    if not several:
        raise UserError(
            "a study with a point of several workers that has as many cores or GPUs",
            "none",
            "Add larger counts to sweep.workers.",
        )
    by_size = sorted(several, key=lambda point: (point.workers, -point.seed))
    choice = findings.advice.choice
    if choice:
        larger = [
            point
            for point in by_size
            if point.workers > choice.workers
            and key_of_point(point) == choice.key.with_(choice.strategy, point.workers)
        ]
        if larger:
            first = min(larger, key=lambda point: (point.workers, point.seed))
            return first, f"the next larger count than is advised ({choice.key.label})"
    done = {row.key for row in findings.rows}
    measured = [point for point in by_size if key_of_point(point) in done]
    if measured:
        return measured[-1], "the largest that the study has measured"
    return by_size[-1], "the largest of the study"


def key_of_point(point: Point) -> Key:
    """The row of a point in the study's table."""
    return key_of(point.strategy, point.workers, point.swept)


def _with_files(folder: StudyFolder, point: Point) -> Point:
    """The point with the data of a run of it, or of another that reads the same."""
    same_data = [other for other in folder.points() if other.data == point.data]
    for candidate in sorted(same_data, key=lambda other: other.name != point.name):
        for run in reversed(folder.runs(candidate.name)):
            with contextlib.suppress(UserError):
                if (files := run.point().files) is not None:
                    Prepared.open(files.prepared)
                    return point.with_files(files.prepared, files.split, files.class_weights)
    raise UserError(
        "a study of which a run has begun",
        f"{folder.path}, without a run that reads what {point.name} reads",
        "Run it first: scalestudy run with its study file.",
    )
