"""Numbers that were measured elsewhere, alone or beside a study of ours."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scalestudy.analysis.findings import Findings, analyse
from scalestudy.analysis.read import read_study
from scalestudy.analysis.runs import Planned, Run
from scalestudy.features.imported.base import Wanted
from scalestudy.features.imported.gather import Elsewhere, gather
from scalestudy.features.imported.made_runs import SOURCE
from scalestudy.features.imported.notes import foreign_notes
from scalestudy.study.store import StudyFolder


def elsewhere(
    sources: Sequence[str], wanted: Wanted | None = None, folder: StudyFolder | None = None
) -> Findings:
    """Read and analyse numbers of others.

    Args:
        sources: Files, folders and patterns.
        wanted: What the user says of them.
        folder: A study of ours to be shown beside them; `source` then tells whose a row is.

    Raises:
        UserError: What `gather` raises.
    """
    found = gather(sources, wanted)
    if folder is None:
        return _noted(analyse(_name(sources, found), found.runs), found)
    own = read_study(folder)
    theirs = "elsewhere" if own.name == _name(sources, found) else _name(sources, found)
    runs = [*(_of(run, own.name) for run in own.runs), *(_of(run, theirs) for run in found.runs)]
    planned = [_planned(point, own.name) for point in own.planned]
    return _noted(analyse(f"{own.name} and {theirs}", runs, planned, own.target), found)


def _noted(findings: Findings, found: Elsewhere) -> Findings:
    return replace(findings, readings=(*foreign_notes(findings), *found.readings))


def _of(run: Run, source: str) -> Run:
    swept = {SOURCE: source} | run.result.swept  # files that were told apart stay so
    return replace(run, result=run.result.model_copy(update={"swept": swept}))


def _planned(point: Planned, source: str) -> Planned:
    return replace(point, swept=tuple(sorted((*point.swept, (SOURCE, source)))))


def _name(sources: Sequence[str], found: Elsewhere) -> str:
    files = list(dict.fromkeys(run.source.file for run in found.runs if run.source))
    if len(files) == 1:
        return Path(files[0]).stem or files[0]
    return (
        Path(sources[0]).name if len(sources) == 1 and Path(sources[0]).is_dir() else "Numbers from elsewhere"
    )
