"""What the runs of a study took, those included that came to nothing: read from their folders."""

import time
from dataclasses import dataclass
from datetime import datetime

from scalestudy.launch.base import Overview, PointStatus
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.state import UNSUCCESSFUL, RunFiles, state_of_files
from scalestudy.study.store import StudyFolder


@dataclass(frozen=True)
class Work:
    """Worker-hours of a study's runs, and how long queues let them wait.

    Attributes:
        useful: Worker-hours of finished runs, from the start of their processes to their results.
        lost: Worker-hours of runs that ended without a result, as far as their times are known.
        attempts: Number of such runs.
        unknown: Those of them whose times are not known: they are in `lost` with nothing.
        restarts: How often finished runs went on from a checkpoint; what was lost there is not recorded.
        queued: Finished runs that a queue started.
        waits: Seconds that those of them waited whose start is known.
    """

    useful: float
    lost: float
    attempts: int
    unknown: int
    restarts: int
    queued: int
    waits: tuple[float, ...]

    @property
    def share(self) -> float | None:
        """Lost worker-hours for each useful one; None where nothing finished, or a loss has no time."""
        return self.lost / self.useful if self.useful and not self.unknown else None


def work_of(folder: StudyFolder, overview: Overview) -> Work:
    """Read what all runs of a study took; those under way do not count."""
    done = [each for each in overview.points if each.result is not None]
    results = [each.result for each in done if each.result is not None]
    ended = [
        (each.point.workers, run)
        for each in overview.points
        for run in folder.runs(each.name)
        if _came_to_nothing(each, run)
    ]
    spans = [(workers, seconds_of(run)) for workers, run in ended]
    queued = [each for each in done if each.job is not None]
    waits = [wait for each in queued if (wait := _waited(each)) is not None]
    return Work(
        useful=sum(result.workers * (result.wall_seconds or 0.0) for result in results) / 3600,
        lost=sum(workers * seconds for workers, seconds in spans if seconds is not None) / 3600,
        attempts=len(spans),
        unknown=sum(seconds is None for _, seconds in spans),
        restarts=sum(result.restarts for result in results),
        queued=len(queued),
        waits=tuple(waits),
    )


def seconds_of(run: RunFolder) -> float | None:
    """How long the processes of a run lived that has no result; None where its files do not say it.

    From the start that rank 0 or the launcher wrote down to the last sign of any rank.
    """
    owner, ranks = run.launcher_process(), run.ranks()
    starts = [rank.began for rank in ranks if rank.began is not None]
    start = min(starts, default=owner.written if owner else None)
    progress = run.progress()
    ends = [cause.time for cause in run.causes()] + [sign.written for sign in run.signs()]
    ends += [progress.updated] if progress else []
    if start is None or not ends or max(ends) < start:
        return None
    return max(ends) - start


def _came_to_nothing(point: PointStatus, run: RunFolder) -> bool:
    if point.run is not None and run == point.run:
        return point.state in UNSUCCESSFUL
    return state_of_files(RunFiles.of(run), now=time.time()) in UNSUCCESSFUL


def _waited(point: PointStatus) -> float | None:
    """Seconds from a job's submission to its start, by rank 0's word, else by the queue's last one."""
    resumed = point.result is not None and point.result.restarts
    if point.run is None or point.job is None or resumed or point.run.requeues():
        return None
    starts = [rank.began for rank in point.run.ranks() if rank.began is not None]
    if not starts and point.view is not None and point.view.start:
        try:
            starts = [datetime.fromisoformat(point.view.start).timestamp()]
        except ValueError:
            starts = []
    return max(0.0, min(starts) - point.job.submitted) if starts else None
