"""Read files of numbers measured elsewhere into one study, say how they were read, and find the demo's."""

import glob
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from scalestudy.analysis.decision import Criteria
from scalestudy.analysis.findings import Findings, analyse
from scalestudy.analysis.measures import Basis
from scalestudy.analysis.runs import Key, Run, key_of_run
from scalestudy.features.imported.columns import ImportOptions
from scalestudy.features.imported.doubts import (
    refuse_mixed_units,
    refuse_unclear_throughput,
)
from scalestudy.features.imported.file_rows import FORMS, printable_name
from scalestudy.features.imported.imported_table import Reading, read_table
from scalestudy.features.imported.run_of_rows import UNNAMED
from scalestudy.report.document import Items, Section
from scalestudy.util.errors import UserError
from scalestudy.util.printable import printable

SOURCE = "source"
"""Swept key that separates studies with the same points."""
MOST_NAMED = 8
"""Maximum number of lines or files listed in a message; the rest are counted."""
_BASES: dict[Basis, str] = {
    "throughput": "their stated throughputs",
    "epoch": "the times of an epoch (without the first, where each is known), assuming that all epochs"
    " processed as many samples",
    "training": "whole training times, assuming that all runs did the same work",
}
NAME = "published-unet"
"""Name of the study, of its table and of its page."""


@dataclass(frozen=True)
class Imported:
    """Runs of all files, and sentences on how each file was understood."""

    runs: tuple[Run, ...]
    readings: tuple[str, ...]


def import_findings(
    sources: Sequence[str],
    options: ImportOptions | None = None,
    target_quality: float | None = None,
    criteria: Criteria | None = None,
) -> Findings:
    """Read and analyse numbers that were measured elsewhere.

    Args:
        sources: Files, folders and patterns.
        options: How to read them.
        target_quality: Quality for the useful speed-up; if None, that of one worker less the margin.
        criteria: What is asked of the choice; its margin is that of `options`.

    Raises:
        UserError: As in `gather`.
    """
    imported, margin = (
        gather_runs(sources, options),
        options.margin if options else None,
    )
    files = {run.source.file for run in imported.runs if run.source}
    name = Path(*files).stem if len(files) == 1 else "Imported numbers"
    wanted = replace(criteria or Criteria(), margin=margin)
    findings = analyse(
        name, imported.runs, criteria=wanted, target_quality=target_quality
    )
    return replace(
        findings,
        readings=(*imported.readings, *_unknown_hours(findings)),
        assumptions=tuple(about(findings)),
    )


def gather_runs(
    sources: Sequence[str], options: ImportOptions | None = None
) -> Imported:
    """Read files, folders and patterns of files.

    Raises:
        UserError: A file given by its name cannot be read, none of several files can, or their numbers can be
            understood in two ways.
    """
    options = options or ImportOptions()
    paths = paths_of(sources)
    read: list[tuple[str, Reading]] = []
    left: list[str] = []
    for (path, is_named), label in zip(
        paths.items(), _labels(list(paths)), strict=True
    ):
        try:
            read.append((label, read_table(path, label, options)))
        except UserError as error:
            if is_named or len(paths) == 1:
                raise
            left.append(
                f"{label} (expected {error.expected}; received {error.received}; {error.action})"
            )
    if not read:
        seen = f"none among {len(paths)} files: {_named(left)}"
        raise UserError(
            f"a table or a log: {', '.join(FORMS)}",
            seen,
            "See `scalestudy docs guides/imported`.",
        )
    refuse_unclear_throughput([reading for _, reading in read])
    runs = [run for _, reading in read for run in reading.runs]
    refuse_mixed_units(runs)
    runs, remarks = _tell_sources_apart(runs)
    left_out = [f"Files left out: {_named(left)}."] if left else []
    return Imported(
        tuple(runs), (*_sentences(read), *remarks, *_repeats(runs), *left_out)
    )


def paths_of(sources: Sequence[str]) -> dict[Path, bool]:
    """Return each file to read once, in order, and whether the user named it.

    Raises:
        UserError: A source does not exist, or is a pipe, a device, an empty folder or a folder of a study.
    """
    paths: dict[Path, tuple[Path, bool]] = {}
    for source in sources:
        for path, is_named in _files(source):
            paths.setdefault(path.resolve(), (path, is_named))
    return dict(paths.values())


def _files(source: str) -> list[tuple[Path, bool]]:
    path = Path(source).expanduser()
    if path.is_file():
        return [(path, True)]
    if path.exists() and not path.is_dir():  # opening a pipe would block
        seen = f"{printable(source)}, a pipe or device"
        raise UserError(
            "a file or a folder", seen, "Save its contents to a file first."
        )
    if path.is_dir():
        found = [path]
    else:
        found = [Path(name) for name in glob.glob(str(path), recursive=True)]
    if not found:
        raise UserError(
            "a file that exists", printable(source), "Correct the name after --from."
        )
    files = []
    for match in sorted(found, key=_in_order):
        files += _files_in(match) if match.is_dir() else [match]
    files = [file for file in files if file.is_file()]
    if not files:
        raise UserError(
            "a folder with files",
            f"none in {printable(source)}",
            "Name another with --from.",
        )
    return [(file, False) for file in files]


def _files_in(folder: Path) -> list[Path]:
    """Return all files below a folder that are not hidden."""
    if (folder / "study.json").exists():
        seen = f"{printable(str(folder))}, the folder of a study"
        action = "Compare them: scalestudy compare FILE DIR"
        raise UserError("numbers measured elsewhere after --from", seen, action)
    paths = [path.relative_to(folder) for path in folder.rglob("*")]
    visible = []
    for path in paths:
        if not any(part.startswith(".") for part in path.parts):
            visible.append(path)
    return [folder / path for path in sorted(visible, key=_in_order)]


def _in_order(path: Path) -> tuple[Any, ...]:
    """Sort key of files: `log_8` comes before `log_10`."""
    return path.parts[:-1], len(path.name), path.name


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return distinct labels: file names if they differ, else relative paths."""
    short = [path.name for path in paths]
    if len(set(short)) == len(short):
        return [printable_name(name) for name in short]
    root = os.path.commonpath([path.absolute().parent for path in paths])
    return [printable(os.path.relpath(path.absolute(), root)) for path in paths]


def _tell_sources_apart(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """Add `source` to runs of separate studies, drop seeds that runs of a point share, and return remarks."""
    remarks = []
    if any(run.result.strategy == UNNAMED for run in runs):
        remarks.append(
            f"Runs without a strategy are called {UNNAMED}: --strategy NAME says it."
        )
    studies = _studies(runs)
    holders: dict[Key, set[str]] = defaultdict(set)
    for run in runs:
        holders[key_of_run(run)].add(studies[_file(run)])
    if any(len(several) > 1 for several in holders.values()):
        runs = [
            _with(run, swept={**run.result.swept, SOURCE: studies[_file(run)]})
            for run in runs
        ]
        remarks.append(
            "Files hold the same points, so they are studies of their own: `source` tells them apart."
        )
    seeds = Counter((key_of_run(run), run.result.seed) for run in runs)
    if any(count > 1 and seed is not None for (_, seed), count in seeds.items()):
        remarks.append(
            "Some runs of one point state the same seed: they count as repeats of unknown seed."
        )
        runs = [
            _with(run, seed=None)
            if seeds[key_of_run(run), run.result.seed] > 1
            else run
            for run in runs
        ]
    return runs, remarks


def _studies(runs: Sequence[Run]) -> dict[str, str]:
    """Return the study of each file: a table of several points is one, as are all files of one folder.

    Folders whose names differ only in numbers (`run1`, `run2`) hold repeats.
    """
    points: dict[str, set[Key]] = defaultdict(set)
    for run in runs:
        points[_file(run)].add(key_of_run(run))
    studies = {}
    for file, keys in points.items():
        folder = re.sub(r"\d+", "N", os.path.dirname(file))
        studies[file] = file if len(keys) > 1 else folder or "single files"
    return studies


def _file(run: Run) -> str:
    return run.source.file if run.source else ""


def _with(run: Run, **changes: Any) -> Run:
    return replace(run, result=run.result.model_copy(update=changes))


def _repeats(runs: Sequence[Run]) -> list[str]:
    """Name points with several runs of unknown seed, which count as repeats."""
    unseeded: dict[Key, list[str]] = defaultdict(list)
    for run in runs:
        if run.result.seed is None:
            unseeded[key_of_run(run)].append(str(run.source))
    several = {key: places for key, places in unseeded.items() if len(places) > 1}
    if not several:
        return []
    key, places = next(iter(several.items()))
    noun = "point" if len(several) == 2 else "points"
    more = f"; and of {len(several) - 1} more {noun}" if len(several) > 1 else ""
    return [
        f"Rows without a seed count as repeats of their point: {key.label} ({_named(places)}){more}."
    ]


def _sentences(read: Sequence[tuple[str, Reading]]) -> list[str]:
    """Return sentences on each file; files with equal remarks share them."""
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for label, reading in read:
        alike[reading.remarks].append(label)
    sentences = [
        f"{_named(labels, ', ')}: {' '.join(remarks)}"
        for remarks, labels in alike.items()
    ]
    return sentences + [
        f"{label}: left out: {_named(reading.skipped)}."
        for label, reading in read
        if reading.skipped
    ]


def _named(items: Sequence[str], between: str = "; ") -> str:
    if len(items) > MOST_NAMED:
        rest = f"{between}and {len(items) - MOST_NAMED} more"
    else:
        rest = ""
    return between.join(items[:MOST_NAMED]) + rest


def section(findings: Findings) -> Section | None:
    """Return how the files were read; None if nothing was imported."""
    lines = (*findings.assumptions, *findings.readings)
    if lines:
        return Section("How the numbers were read", (Items(lines),), name="readings")
    return None


def about(findings: Findings) -> list[str]:
    """Return what is unknown and assumed about imported runs, in sentences; empty if there are none."""
    imported = [run for run in findings.runs if run.foreign]
    if not imported:
        return []
    sentences = [
        "All runs were measured elsewhere. It is not known whether each sample counts once, whether all"
        " runs saw the same batches, whether times exclude start-up, compilation and evaluation, and whether"
        " the quality is that of the saved model on the whole validation set.",
    ]
    bases = dict.fromkeys(
        row.basis for row in findings.rows if row.source and row.speed.steady.value
    )
    sentences += [f"Their speed-up is the ratio of {_BASES[basis]}." for basis in bases]
    unseeded = sum(run.result.seed is None for run in imported)
    if unseeded:
        sentences.append(
            f"The seeds of {unseeded} of them are unknown, so their qualities are compared unpaired."
        )
    return sentences


def _unknown_hours(findings: Findings) -> list[str]:
    """Return what intervals of speed-ups assume on hours, in a sentence; empty if no row has repeats."""
    rates = findings.measures.rate
    if not any(len(values) > 1 for values in rates.values.values()):
        return []
    allowed = math.sqrt(rates.rounds.between.value)
    return [
        "It is not known which runs shared an hour, so intervals of speed-ups allow for rows that differ by"
        f" {allowed:.0%}."
    ]


def table() -> Path:
    """Return the path of its table: one run per row, with the training time in seconds and the IoU."""
    return Path(
        str(resources.files("scalestudy.features.imported").joinpath(f"{NAME}.csv"))
    )


def published_findings() -> Findings:
    """Analyse the table as `report --from` does. The first reading names its source."""
    findings = import_findings([str(table())])
    return replace(findings, readings=(source(), *findings.readings))


def source() -> str:
    """Return the source of the numbers: the comment at the head of the table."""
    lines = table().read_text().splitlines()
    return " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
