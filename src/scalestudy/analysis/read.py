"""The one place where analysis reads a study's folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from scalestudy.analysis.runs import Planned, Run
from scalestudy.analysis.study import EFFICIENCY_TARGET, Study, analyse
from scalestudy.study.records import Failure, RankRecord

if TYPE_CHECKING:
    from scalestudy.study.store import StudyFolder


def read_study(folder: "StudyFolder", target: float = EFFICIENCY_TARGET) -> Study:
    """Read and analyse a study's folder, whatever state it is in."""
    root = Path(folder.path)
    runs = [
        Run(result, tuple(epochs), _relative(path, root), tuple(_ranks(path)))
        for _, result, epochs, path in folder.latest_results()
    ]
    return analyse(folder.name, runs, list(_planned(folder, root)), target)


def _planned(folder: "StudyFolder", root: Path) -> Iterable[Planned]:
    states = folder.states()
    for point in folder.points():
        state = states.get(point.name, "missing")
        newest = _newest(root / "points" / point.name)
        failure = _failure(newest) if state == "failed" and newest else None
        yield Planned(
            name=point.name,
            strategy=point.strategy,
            workers=point.workers,
            seed=point.seed,
            state=state,
            swept=tuple(sorted(point.swept.items())),
            folder=_relative(newest, root) if newest else None,
            reason=None if failure is None else failure.reason,
            tail=() if failure is None else tuple(failure.tail),
        )


def _newest(point: Path) -> Path | None:
    numbered = [
        (int(path.name[4:]), path)
        for path in (point.iterdir() if point.is_dir() else ())
        if path.name.startswith("run-") and path.name[4:].isdigit()
    ]
    return max(numbered)[1] if numbered else None


def _failure(run: Path) -> Failure | None:
    try:
        return Failure.model_validate_json((run / "failure.json").read_bytes())
    except (OSError, ValidationError):
        return None  # killed before it could be written: the state still says "failed"


def _ranks(run: Path) -> Iterable[RankRecord]:
    try:
        yield RankRecord.model_validate_json((run / "ranks" / "0.json").read_bytes())
    except (OSError, ValidationError):
        return  # a report without its environment is still a report


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
