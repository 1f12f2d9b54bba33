"""Read the worker-hours of a study's runs from their folders, including runs without a result."""

import time
from dataclasses import dataclass

from scalestudy.launch.base import Overview, PointStatus
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.state import UNSUCCESSFUL, RunFiles, state_of_files
from scalestudy.study.store import StudyFolder


@dataclass(frozen=True)
class Work:
    """Worker-hours of a study's runs.

    Attributes:
        useful: Worker-hours of finished runs, from the start of their processes to their results.
        lost: Worker-hours of runs that ended without a result, if their times are known.
        attempts: Number of runs that ended without a result.
        unknown: Number of these runs whose times are unknown; they add nothing to `lost`.
    """

    useful: float
    lost: float
    attempts: int
    unknown: int

    @property
    def share(self) -> float | None:
        """Ratio of lost to useful worker-hours; None if no run finished or a lost time is unknown."""
        return self.lost / self.useful if self.useful and not self.unknown else None


def work_of(folder: StudyFolder, overview: Overview) -> Work:
    """Read the worker-hours of all runs of a study. Runs that are still going on do not count."""
    results = [point.result for point in overview.points if point.result is not None]
    failed = [
        (point.point.workers, seconds_of(run))
        for point in overview.points
        for run in folder.runs(point.name)
        if _came_to_nothing(point, run)
    ]
    return Work(
        useful=sum(result.workers * (result.wall_seconds or 0.0) for result in results) / 3600,
        lost=sum(workers * (seconds or 0.0) for workers, seconds in failed) / 3600,
        attempts=len(failed),
        unknown=sum(seconds is None for _, seconds in failed),
    )


def seconds_of(run: RunFolder) -> float | None:
    """Return how long the processes of a run without a result lived; None if its files do not show it.

    The time is that from the start, recorded by a rank or the launcher, to the last sign of any rank.
    """
    launcher, progress = run.launcher_process(), run.progress()
    starts = [rank.began for rank in run.ranks() if rank.began is not None]
    start = min(starts, default=launcher.written if launcher else None)
    ends = [cause.time for cause in run.causes()] + [sign.written for sign in run.signs()]
    ends += [progress.updated] if progress else []
    return max(ends) - start if start is not None and ends and max(ends) >= start else None


def _came_to_nothing(point: PointStatus, run: RunFolder) -> bool:
    if point.run is not None and run == point.run:
        return point.state in UNSUCCESSFUL
    return state_of_files(RunFiles.of(run), now=time.time()) in UNSUCCESSFUL
