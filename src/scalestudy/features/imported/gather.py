"""Read files of numbers measured elsewhere into one study, optionally together with one of our own."""

import glob
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scalestudy.analysis.findings import Findings, analyse
from scalestudy.analysis.read import read_study
from scalestudy.analysis.runs import Key, Run, key_of_run
from scalestudy.features.imported.columns import ImportOptions, shown
from scalestudy.features.imported.section import about
from scalestudy.features.imported.table import SUFFIXES, UNNAMED, Reading, read_table
from scalestudy.features.imported.tensorboard import MARK, read_events, require_tensorboard, run_folder
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import UserError
from scalestudy.util.escaping import printable

SOURCE = "source"
"""Swept key that separates studies with the same points."""
MOST_NAMED = 8
"""Maximum number of lines or files listed in a message; the rest are counted."""


@dataclass(frozen=True)
class Imported:
    """Runs of all files, and sentences on how each file was understood."""

    runs: tuple[Run, ...]
    readings: tuple[str, ...]


def import_findings(
    sources: Sequence[str],
    options: ImportOptions | None = None,
    folder: StudyFolder | None = None,
    target_quality: float | None = None,
) -> Findings:
    """Read and analyse numbers that were measured elsewhere.

    Args:
        sources: Files, folders and patterns.
        options: How to read them.
        folder: Our own study to show with them; the swept key `source` then names the study of each row.
        target_quality: Quality for the time to quality. If None, that of one worker less the margin.

    Raises:
        UserError: As in `gather`.
    """
    imported = gather(sources, options)
    files = {run.source.file for run in imported.runs if run.source}
    name = Path(*files).stem if len(files) == 1 else "Imported numbers"
    if folder is None:
        findings = analyse(name, imported.runs, target_quality=target_quality)
    else:
        ours = read_study(folder)
        theirs = "imported" if ours.name == name else name
        runs = [
            *(_with_swept(run, {SOURCE: ours.name}) for run in ours.runs),
            *(_with_swept(run, {SOURCE: theirs} | run.result.swept) for run in imported.runs),
        ]
        planned = [
            replace(point, swept=tuple(sorted((*point.swept, (SOURCE, ours.name))))) for point in ours.planned
        ]
        both = f"{ours.name} and {theirs}"
        findings = analyse(both, runs, planned, ours.target, target_quality=target_quality)
    return replace(findings, readings=(*about(findings), *imported.readings))


def gather(sources: Sequence[str], options: ImportOptions | None = None) -> Imported:
    """Read files, folders and patterns of files.

    Raises:
        UserError: A file given by its name cannot be read, or none of several files can.
    """
    options = options or ImportOptions()
    paths = paths_of(sources)
    read: list[tuple[str, Reading]] = []
    left: list[str] = []
    for (path, named), label in zip(paths.items(), _labels(list(paths)), strict=True):
        if path.is_dir():
            require_tensorboard()
        try:
            read.append((label, _read(path, label, options)))
        except UserError as error:
            if named or len(paths) == 1:
                raise
            left.append(f"{label}: {error.received}")
    if not read:
        raise UserError(
            f"a file of numbers: {', '.join(SUFFIXES)} or TensorBoard events",
            f"none among {len(paths)} files: {_named(left)}",
            "See docs/guides/imported.md.",
        )
    runs, remarks = _with_distinct_sources([run for _, reading in read for run in reading.runs])
    left_out = [f"Files left out: {_named(left)}."] if left else []
    return Imported(tuple(runs), (*_sentences(read), *remarks, *left_out))


def _read(path: Path, label: str, options: ImportOptions) -> Reading:
    if path.is_dir():
        return read_events(path, label, options)
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(
            f"a file of numbers: {', '.join(SUFFIXES)} or TensorBoard events",
            f"{label}, which is none of these",
            "Write a CSV file with the columns strategy, workers, training_seconds.",
        )
    return read_table(path, label, options)


def paths_of(sources: Sequence[str]) -> dict[Path, bool]:
    """Return each file or folder of event files to read once, in order, and whether the user named it.

    Raises:
        UserError: A source does not exist, or is a pipe, a device, an empty folder or a folder of a study.
    """
    paths: dict[Path, tuple[Path, bool]] = {}
    for source in sources:
        for file, named in _files(source):
            path = run_folder(file) if MARK in file.name else file
            paths.setdefault(path.resolve(), (path, named and path == file))
    return dict(paths.values())


def _files(source: str) -> list[tuple[Path, bool]]:
    path = Path(source).expanduser()
    if path.is_file():
        return [(path, True)]
    if path.exists() and not path.is_dir():
        seen = f"{printable(source)}, a pipe or device"
        raise UserError("a file or a folder", seen, "Save its contents to a file first.")
    matches = [path] if path.is_dir() else [Path(name) for name in sorted(glob.glob(source, recursive=True))]
    if not matches:
        raise UserError("a file that exists", printable(source), "Correct the name after --from.")
    files = [file for match in matches for file in (_files_in(match) if match.is_dir() else [match])]
    files = [file for file in files if file.is_file()]
    if not files:
        raise UserError("a folder with files", f"none in {printable(source)}", "Name another with --from.")
    return [(file, False) for file in files]


def _files_in(folder: Path) -> list[Path]:
    """Return all paths below a folder that are not hidden; `log_8` comes before `log_10`."""
    if (folder / "study.json").exists():
        raise UserError(
            "numbers measured elsewhere after --from",
            f"{printable(str(folder))}, the folder of a study",
            "Put it before the options: scalestudy report DIR --from FILE",
        )
    paths = [path.relative_to(folder) for path in folder.rglob("*")]
    visible = [path for path in paths if not any(part.startswith(".") for part in path.parts)]
    return [
        folder / path for path in sorted(visible, key=lambda path: (path.parts[:-1], len(path.name), path))
    ]


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return distinct labels: file names if they differ, else relative paths."""
    short = [path.name for path in paths]
    if len(set(short)) == len(short):
        return [shown(name) for name in short]
    root = os.path.commonpath([path.absolute().parent for path in paths])
    return [shown(os.path.relpath(path.absolute(), root)) for path in paths]


def _with_distinct_sources(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """Add `source` to runs of separate studies, drop seeds that runs of a point share, and return remarks."""
    remarks = []
    if any(run.result.strategy == UNNAMED for run in runs):
        remarks.append(f"Runs without a strategy are called {UNNAMED}: --strategy NAME says it.")
    points: Mapping[str, set[Key]] = defaultdict(set)
    for run in runs:
        points[run.source.file if run.source else ""].add(key_of_run(run))
    several = [keys for keys in points.values() if len(keys) > 1]
    if any(a & b for place, a in enumerate(several) for b in several[place + 1 :]):
        runs = [
            _with_swept(run, {**run.result.swept, SOURCE: run.source.file if run.source else ""})
            for run in runs
        ]
        remarks.append(
            "Files hold the same points, so they are studies of their own: `source` tells them apart."
        )
    seeds = Counter((key_of_run(run), run.result.seed) for run in runs)
    if any(count > 1 and seed is not None for (_, seed), count in seeds.items()):
        remarks.append("Some runs of one point state the same seed: they count as repeats of unknown seed.")
        runs = [
            replace(run, result=run.result.model_copy(update={"seed": None}))
            if seeds[key_of_run(run), run.result.seed] > 1
            else run
            for run in runs
        ]
    return runs, remarks


def _with_swept(run: Run, swept: dict[str, Any]) -> Run:
    return replace(run, result=run.result.model_copy(update={"swept": swept}))


def _sentences(read: Sequence[tuple[str, Reading]]) -> list[str]:
    """Return sentences on each file; files with equal remarks share them."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for label, reading in read:
        alike.setdefault(reading.remarks, []).append(label)
    sentences = [f"{_named(labels)}: {' '.join(remarks)}" for remarks, labels in alike.items()]
    return sentences + [
        f"{label}: left out: {_named(reading.skipped)}." for label, reading in read if reading.skipped
    ]


def _named(items: Sequence[str]) -> str:
    rest = f"; and {len(items) - MOST_NAMED} more" if len(items) > MOST_NAMED else ""
    return "; ".join(items[:MOST_NAMED]) + rest
