"""Read files of numbers measured elsewhere into one study, and say how they were read."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scalestudy.analysis.decision import Criteria
from scalestudy.analysis.findings import Findings, analyse
from scalestudy.analysis.runs import Key, Run, key_of_run
from scalestudy.features.imported.assumptions import about, unknown_hours
from scalestudy.features.imported.columns import ImportOptions
from scalestudy.features.imported.doubts import (
    refuse_mixed_units,
    refuse_unclear_throughput,
)
from scalestudy.features.imported.file_rows import FORMS
from scalestudy.features.imported.find_files import labels_of, paths_of
from scalestudy.features.imported.imported_table import Reading, read_table
from scalestudy.features.imported.run_of_rows import UNNAMED
from scalestudy.util.errors import UserError
from scalestudy.util.text import plural

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
    imported = gather_runs(sources, options)
    files = {_file(run) for run in imported.runs}
    name = "Imported numbers"
    if len(files) == 1:
        (file,) = files
        name = Path(file).stem
    margin = None
    if options:
        margin = options.margin
    wanted = replace(criteria or Criteria(), margin=margin)
    findings = analyse(
        name,
        imported.runs,
        criteria=wanted,
        target_quality=target_quality,
    )
    return replace(
        findings,
        readings=(*imported.readings, *unknown_hours(findings)),
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
    labels = labels_of(list(paths))
    for (path, is_named), label in zip(paths.items(), labels, strict=True):
        try:
            read.append((label, read_table(path, label, options)))
        except UserError as error:
            # A folder may hold other files; one that the user named must be read.
            if is_named or len(paths) == 1:
                raise
            why = (
                f"expected {error.expected}; received {error.received}; {error.action}"
            )
            left.append(f"{label} ({why})")
    if not read:
        seen = f"none among {len(paths)} files: {_named(left)}"
        raise UserError(
            f"a table or a log: {', '.join(FORMS)}",
            seen,
            "See `scalestudy docs guides/imported`.",
        )
    # Both doubts are of all files together: a log is of one number of workers and of one unit.
    refuse_unclear_throughput([reading for _, reading in read])
    runs: list[Run] = []
    for _, reading in read:
        runs += reading.runs
    refuse_mixed_units(runs)
    runs, remarks = _tell_sources_apart(runs)
    readings = [*_sentences(read), *remarks, *_repeats(runs)]
    if left:
        readings.append(f"Files left out: {_named(left)}.")
    return Imported(tuple(runs), tuple(readings))


def _tell_sources_apart(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """Add `source` to runs of separate studies, drop seeds that runs of a point share, and return remarks."""
    runs, remarks = list(runs), []
    if any(run.result.strategy == UNNAMED for run in runs):
        remarks.append(
            f"Runs without a strategy are called {UNNAMED}: --strategy NAME says it."
        )
    studies = _studies(runs)
    holders: dict[Key, set[str]] = defaultdict(set)
    for run in runs:
        study = studies[_file(run)]
        holders[key_of_run(run)].add(study)
    # Runs of a table and of logs, or of two tables, are no repeats: a mean over them would be of two studies.
    if any(len(several) > 1 for several in holders.values()):
        for place, run in enumerate(runs):
            swept = {**run.result.swept, SOURCE: studies[_file(run)]}
            runs[place] = _with(run, swept=swept)
        remarks.append(
            "Files hold the same points, so they are studies of their own: `source` tells them apart."
        )
    if _forget_shared_seeds(runs):
        remarks.append(
            "Some runs of one point state the same seed: they count as repeats of unknown seed."
        )
    return runs, remarks


def _forget_shared_seeds(runs: list[Run]) -> bool:
    """Drop the seeds that several runs of a point state; return whether there are any.

    Runs are paired by seed, and of two with the same seed neither is the partner.
    """
    seeds: Counter[tuple[Key, int | None]] = Counter()
    for run in runs:
        seeds[key_of_run(run), run.result.seed] += 1
    found = False
    for place, run in enumerate(runs):
        seed = run.result.seed
        if seed is not None and seeds[key_of_run(run), seed] > 1:
            runs[place] = _with(run, seed=None)
            found = True
    return found


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
        if len(keys) > 1:
            studies[file] = file
        else:
            studies[file] = folder or "single files"
    return studies


def _file(run: Run) -> str:
    if run.source is None:
        return ""
    return run.source.file


def _with(run: Run, **changes: Any) -> Run:
    return replace(run, result=run.result.model_copy(update=changes))


def _repeats(runs: Sequence[Run]) -> list[str]:
    """Name points with several runs of unknown seed, which count as repeats."""
    unseeded: dict[Key, list[str]] = defaultdict(list)
    for run in runs:
        if run.result.seed is None:
            unseeded[key_of_run(run)].append(str(run.source))
    several = []
    for key, places in unseeded.items():
        if len(places) > 1:
            several.append((key, places))
    if not several:
        return []
    # One point as an example: the lines of all would fill the screen.
    (key, places), *others = several
    more = ""
    if others:
        more = f"; and of {len(others)} more {plural('point', len(others))}"
    return [
        f"Rows without a seed count as repeats of their point: {key.label} ({_named(places)}){more}."
    ]


def _sentences(read: Sequence[tuple[str, Reading]]) -> list[str]:
    """Return sentences on each file; files with equal remarks share them."""
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for label, reading in read:
        alike[reading.remarks].append(label)
    sentences = []
    for remarks, labels in alike.items():
        sentences.append(f"{_named(labels, ', ')}: {' '.join(remarks)}")
    for label, reading in read:
        if reading.skipped:
            sentences.append(f"{label}: left out: {_named(reading.skipped)}.")
    return sentences


def _named(items: Sequence[str], between: str = "; ") -> str:
    named = list(items[:MOST_NAMED])
    if len(items) > MOST_NAMED:
        named.append(f"and {len(items) - MOST_NAMED} more")
    return between.join(named)
