"""Runs that were interrupted, and continue from their checkpoint."""

from scalestudy.config.point import Point
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.study_folder import StudyFolder

FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
"""Signals with which a person, a machine or the kernel out of memory ends a rank."""


def interrupted_run(folder: StudyFolder, point: Point) -> RunFolder | None:
    """Return the newest run of a point, prepared to continue, if it was interrupted and has a checkpoint.

    A run that failed by itself is not continued, in contrast to one of whose ranks was killed; nor one with
    other settings or one that a queue has run: its timings would mix two setups.
    """
    for run in folder.runs(point.name)[-1:]:
        failure = run.failure()
        if (
            run.checkpoint.exists()
            and (
                # Without a record, the launcher itself was killed.
                failure is None
                or failure.rank is None
                or failure.signal in FROM_OUTSIDE
            )
            and run.point().same_as(point)
            and not (run.path / "job.json").exists()
        ):
            # From now on, the run is alive as long as this process.
            run.write_launcher_process()
            # Heartbeats of the last attempt would be taken for those of this one.
            run.forget_signs()
            # Limits such as progress_timeout may have been changed since.
            write_point(run.path / "point.json", point)
            run.forget_stop()
            (run.path / "failure.json").unlink(missing_ok=True)
            run.forget_causes()
            return run
    return None
