"""One run on this machine, watched while it lasts."""

from collections.abc import Callable

from scalestudy.launch.base import Note
from scalestudy.launch.local.run import RunOutcome, run_steps
from scalestudy.study.point import Point
from scalestudy.study.records import Progress
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.store import StudyFolder


def run_point(
    folder: StudyFolder, point: Point, *, watch: Callable[[RunFolder, Progress | None], None]
) -> RunOutcome:
    """Run it to its end; `watch` sees it and its progress meanwhile, and may raise KeyboardInterrupt."""
    steps = run_steps(folder, point)
    while True:
        try:
            run = next(steps)
        except StopIteration as end:
            return end.value
        if isinstance(run, Note):
            continue
        try:
            watch(run, run.progress())
        except KeyboardInterrupt as interrupt:
            steps.throw(interrupt)
