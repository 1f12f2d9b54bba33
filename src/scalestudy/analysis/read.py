"""The one place where analysis reads a study's folder."""

from collections.abc import Iterable
from pathlib import Path

from scalestudy.analysis.findings import EFFICIENCY_TARGET, Findings, analyse
from scalestudy.analysis.runs import Planned, Run
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.store import StudyFolder


def read_study(folder: StudyFolder, target: float = EFFICIENCY_TARGET) -> Findings:
    """Read and analyse a study's folder, whatever state it is in."""
    runs = [
        Run(result, tuple(epochs), _relative(path, folder.path), tuple(RunFolder(path).ranks()))
        for _, result, epochs, path in folder.latest_results()
    ]
    return analyse(folder.name, runs, list(_planned(folder)), target)


def _planned(folder: StudyFolder) -> Iterable[Planned]:
    states = folder.states()
    for point in folder.points():
        runs = folder.runs(point.name)
        state = states[point.name]
        failure = runs[-1].failure() if runs and state == "failed" else None
        yield Planned(
            name=point.name,
            strategy=point.strategy,
            workers=point.workers,
            seed=point.seed,
            state=state,
            swept=tuple(sorted(point.swept.items())),
            folder=_relative(runs[-1].path, folder.path) if runs else None,
            # Without a failure on record its owner itself was killed.
            reason=failure.reason if failure else "interrupted" if state == "failed" else None,
            tail=tuple(failure.tail) if failure else (),
        )


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
