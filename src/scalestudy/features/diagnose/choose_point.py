"""Which point of a study a diagnosis is of."""

from collections.abc import Sequence

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key, key_of
from scalestudy.errors import UserError
from scalestudy.study.point import Point


def named(points: Sequence[Point], name: str) -> Point:
    """The point of this name.

    Raises:
        UserError: If there is none, or if nothing is lost in it that could be told.
    """
    found = next((point for point in points if point.name == name), None)
    if found is None:
        several = [point.name for point in points if point.workers > 1]
        known = ", ".join(several[:8]) + ", …" * (len(several) > 8)
        raise UserError("a point of the study", repr(name), f"Points of several workers: {known or 'none'}.")
    if found.workers == 1:
        raise UserError(
            "a point of several workers",
            f"{name}, of one, whose efficiency is 1 by definition",
            "Name one of more workers; it is held against one worker by itself.",
        )
    if not found.traits.timed:
        raise UserError(
            "a point whose workers compute at the same time",
            f"{name}, whose workers one device computes one after another",
            "Name a point of another strategy.",
        )
    return found


def chosen(points: Sequence[Point], findings: Findings | None) -> tuple[Point, str]:
    """The point that a decision hangs on, and why it is that one.

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
    choice = findings.advice.choice if findings else None
    if findings and choice:
        larger = [
            point
            for point in by_size
            if point.workers > choice.workers
            and _key(point) == choice.key.with_(choice.strategy, point.workers)
        ]
        if larger:
            fewest = [point for point in larger if point.workers == larger[0].workers]
            return fewest[-1], f"the next larger count than is advised ({choice.key.label})"
    done = {row.key for row in findings.rows} if findings else set()
    measured = [point for point in by_size if _key(point) in done]
    if measured:
        return measured[-1], "the largest that the study has measured"
    return by_size[-1], "the largest of the study"


def _key(point: Point) -> Key:
    return key_of(point.strategy, point.workers, point.swept)
