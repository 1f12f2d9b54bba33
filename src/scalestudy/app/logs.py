"""Which run's logs to show, and whether it is still under way."""

from scalestudy.launch.status import study_status
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.store import StudyFolder


def chosen_run(folder: StudyFolder, point: str | None) -> RunFolder | None:
    """The newest run of a point; without one of the point that is running, else of whichever wrote last."""
    if point is not None:
        return next(reversed(folder.runs(point)), None)
    newest = {each.name: runs[-1] for each in folder.points() if (runs := folder.runs(each.name))}
    states = study_status(folder).states if newest else {}
    running = [run for name, run in newest.items() if states[name] == "running"]
    return max(running or newest.values(), key=_last_written, default=None)


def under_way(folder: StudyFolder, run: RunFolder) -> bool:
    """Whether this run waits or works."""
    return any(each.run == run for each in study_status(folder).open)


def _last_written(run: RunFolder) -> float:
    files = [file.stat().st_mtime for file in (run.path / "logs").glob("*.log")]
    return max(files, default=0.0)
