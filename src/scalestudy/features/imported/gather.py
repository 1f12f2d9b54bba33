"""Read tables of other programs into one study, say how they were read, and find the demo's."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from scalestudy.analysis.decision import Criteria
from scalestudy.analysis.findings import Findings, analyse
from scalestudy.analysis.measures import Basis
from scalestudy.analysis.runs import Key, Run, key_of_run
from scalestudy.features.imported.imported_table import UNNAMED, ImportOptions, Reading, read_table, shown
from scalestudy.report.document import Items, Section
from scalestudy.util.errors import UserError, printable

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
    sources: Sequence[str], options: ImportOptions | None = None, target_quality: float | None = None
) -> Findings:
    """Read and analyse numbers that were measured elsewhere.

    `sources` are files. `target_quality` is that for the time to quality; if None, that of one worker less
    the margin.

    Raises:
        UserError: As in `gather`.
    """
    imported, margin = gather(sources, options), options.margin if options else None
    files = {run.source.file for run in imported.runs if run.source}
    name = Path(*files).stem if len(files) == 1 else "Imported numbers"
    findings = analyse(name, imported.runs, criteria=Criteria(margin=margin), target_quality=target_quality)
    return replace(findings, readings=(*about(findings), *imported.readings))


def gather(sources: Sequence[str], options: ImportOptions | None = None) -> Imported:
    """Read files.

    Raises:
        UserError: A file cannot be read.
    """
    paths = list(dict.fromkeys(Path(source).expanduser() for source in sources))
    for path in paths:
        if not path.is_file():  # opening a pipe would block
            raise UserError("a file that exists", printable(str(path)), "Correct the name after --from.")
    names = Counter(path.name for path in paths)
    labels = [shown(path.name) if names[path.name] == 1 else printable(str(path)) for path in paths]
    options = options or ImportOptions()
    read = [(label, read_table(path, label, options)) for path, label in zip(paths, labels, strict=True)]
    runs, remarks = _with_distinct_sources([run for _, reading in read for run in reading.runs])
    return Imported(tuple(runs), (*_sentences(read), *remarks))


def _with_distinct_sources(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """Add `source` to runs of separate studies, drop seeds that runs of a point share, and return remarks."""
    remarks = []
    if any(run.result.strategy == UNNAMED for run in runs):
        remarks.append(f"Runs without a strategy are called {UNNAMED}: --strategy NAME says it.")
    points: Mapping[str, set[Key]] = defaultdict(set)
    for run in runs:
        points[_file(run)].add(key_of_run(run))
    several = [keys for keys in points.values() if len(keys) > 1]
    if any(a & b for place, a in enumerate(several) for b in several[place + 1 :]):
        runs = [_with(run, swept={**run.result.swept, SOURCE: _file(run)}) for run in runs]
        remarks.append(
            "Files hold the same points, so they are studies of their own: `source` tells them apart."
        )
    seeds = Counter((key_of_run(run), run.result.seed) for run in runs)
    if any(count > 1 and seed is not None for (_, seed), count in seeds.items()):
        remarks.append("Some runs of one point state the same seed: they count as repeats of unknown seed.")
        runs = [_with(run, seed=None) if seeds[key_of_run(run), run.result.seed] > 1 else run for run in runs]
    return runs, remarks


def _file(run: Run) -> str:
    return run.source.file if run.source else ""


def _with(run: Run, **changes: Any) -> Run:
    return replace(run, result=run.result.model_copy(update=changes))


def _sentences(read: Sequence[tuple[str, Reading]]) -> list[str]:
    """Return sentences on how each file was read."""
    sentences = [f"{label}: {' '.join(reading.remarks)}" for label, reading in read]
    return sentences + [
        f"{label}: left out: {_named(reading.skipped)}." for label, reading in read if reading.skipped
    ]


def _named(items: Sequence[str]) -> str:
    rest = f"; and {len(items) - MOST_NAMED} more" if len(items) > MOST_NAMED else ""
    return "; ".join(items[:MOST_NAMED]) + rest


_BASES: dict[Basis, str] = {
    "throughput": "their stated throughputs",
    "epoch": "the stated times of an epoch, assuming that all epochs processed as many samples",
    "training": "whole training times, assuming that all runs did the same work",
}


def section(findings: Findings) -> Section | None:
    """Return how the files were read; None if nothing was imported."""
    if not findings.readings:
        return None
    return Section("How the numbers were read", (Items(findings.readings),), name="readings")


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
    bases = dict.fromkeys(row.basis for row in findings.rows if row.source and row.speed.steady.value)
    sentences += [f"Their speed-up is the ratio of {_BASES[basis]}." for basis in bases]
    unseeded = sum(run.result.seed is None for run in imported)
    if unseeded:
        sentences.append(
            f"The seeds of {unseeded} of them are unknown, so their qualities are compared unpaired."
        )
    return sentences


NAME = "published-unet"
"""Name of the study, of its table and of its page."""


def table() -> Path:
    """Return the path of its table: one run per row, with the training time in seconds and the IoU."""
    return Path(str(resources.files("scalestudy.features.imported").joinpath(f"{NAME}.csv")))


def published_findings() -> Findings:
    """Analyse the table as `report --from` does. The first reading names its source."""
    findings = import_findings([str(table())])
    return replace(findings, readings=(source(), *findings.readings))


def source() -> str:
    """Return the source of the numbers: the comment at the head of the table."""
    lines = table().read_text().splitlines()
    return " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
