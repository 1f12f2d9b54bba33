"""Parts of a report's page in folded sections: all metrics, samples and every run."""

from base64 import b64decode
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any
from urllib.parse import quote

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import (
    Key,
    Planned,
    Run,
    key_of_run,
    metric_label,
    whole_metrics,
)
from scalestudy.config.class_names import class_keys
from scalestudy.config.point import REPEATS
from scalestudy.report.document import (
    Block,
    Cell,
    Document,
    Folded,
    Heading,
    Paragraph,
    Photo,
    Photos,
    Table,
    headings_of,
)
from scalestudy.report.number_format import format_number
from scalestudy.report.results import quality_digits
from scalestudy.store.model_record import GalleryRecord, GallerySample
from scalestudy.store.records import SHARED_CORES
from scalestudy.util import units
from scalestudy.util.text import join_first

MOST_CLASSES = 50
"""Largest number of classes shown in metrics; result.json has all."""
COLOURS_OF_MASKS = "Differences: orange is missed, blue is falsely found, pink is another class; grey is not counted."


def all_metrics(findings: Findings) -> list[Table]:
    """Every row's metrics, means over its runs; those of classes of the recommended row, or of the first."""
    groups = findings.measures.groups
    if not groups:
        return []
    choice = findings.advice.choice
    key = choice.key if choice else next(iter(groups))
    tables = []
    for table in (_metrics(groups), *_classes(key, groups[key])):
        if table.rows and len(table.headings) > 1:
            tables.append(table)
    return tables


def _named(
    title: str,
    corner: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, ...]],
) -> Table:
    headings = [Heading(corner, numeric=False)]
    headings += map(Heading, columns)
    return Table(tuple(headings), tuple(rows), title)


def _metrics(groups: Mapping[Key, Sequence[Run]]) -> Table:
    runs_of_all = [*chain.from_iterable(groups.values())]
    names = whole_metrics(runs_of_all)
    if len(names) < 2:
        names = []  # the results have a single metric already
    rows = []
    for key, runs in groups.items():
        means = [_mean(runs, name) for name in names]
        rows.append((key.label, *means))
    labels = [metric_label(name) for name in names]
    return _named("Metrics over the validation set", "Row", labels, rows)


def _classes(key: Key, runs: Sequence[Run]) -> list[Table]:
    classes = runs[0].result.class_names
    values = runs[0].result.validation
    if len(classes) > MOST_CLASSES:
        return []
    metrics = []
    # A metric without classes is in the table of metrics already.
    for name in whole_metrics(runs[:1]):
        # Not every metric has values by class.
        if values.keys() & set(class_keys(name, classes)):
            metrics.append(name)
    rows = []
    for place, label in enumerate(classes):
        means = []
        for name in metrics:
            of_class = class_keys(name, classes)[place]
            means.append(_mean(runs, of_class))
        rows.append((label, *means))
    labels = [metric_label(name) for name in metrics]
    return [_named(f"By class: {key.label}", "Class", labels, rows)]


def _mean(runs: Sequence[Run], name: str) -> str:
    finite = []
    for run in runs:
        value = run.result.validation.get(name)
        if value is not None and isfinite(value):
            finite.append(value)
    if not finite:
        return format_number(None, 4)
    return format_number(sum(finite) / len(finite), 4)


def sample_gallery(findings: Findings) -> Folded | None:
    """Samples of one run: of the recommended row, or of the first run that saved any."""
    choice = findings.advice.choice
    advised = []
    for run in findings.runs:
        if choice and key_of_run(run) == choice.key:
            advised.append(run)
    for run in [*advised, *findings.runs]:
        if run.gallery is not None and run.gallery.samples:
            title = f"Samples predicted by {run.result.name}"
            return Folded(title, gallery_blocks(run.gallery), "gallery", page_only=True)
    return None


def gallery_blocks(record: GalleryRecord) -> tuple[Block, ...]:
    """The best, median and worst validation samples."""
    among = f"all {record.of}"
    if record.considered < record.of:
        among = f"{record.considered} of {record.of}"
    text = f"Chosen from {among} validation samples by the loss of each sample."
    if record.weights == "best":
        text += " Weights of the best epoch."
    blocks: list[Block] = [Paragraph(text)]
    if record.kind == "masks":
        blocks.append(Paragraph(COLOURS_OF_MASKS))
    photos = [_photo(sample) for sample in record.samples]
    blocks.append(Photos(tuple(photos)))
    return tuple(blocks)


def gallery_document(record: GalleryRecord, label: str) -> Document:
    """The samples of a model as a separate page titled `label`."""
    return Document(
        label,
        gallery_blocks(record),
        "Best, median and worst validation samples",
    )


def _photo(sample: GallerySample) -> Photo:
    facts = [f"loss {format_number(sample.loss, 4)}"]
    if sample.predicted is not None:
        percent = format_number(100 * (sample.probability or 0), 0)
        predicted = f"{sample.predicted} ({percent} %)"
        if sample.truth is None or sample.truth == sample.predicted:
            facts.append(f"{predicted}, correct")
        else:
            facts.append(f"predicted {predicted}, truth {sample.truth}")
    said = "; ".join(facts)
    images = []
    for name, content in sample.pictures.items():
        # What a reader who does not see the picture is told.
        alternative = f"{name} of {sample.name}: {said}"
        images.append((b64decode(content), alternative))
    roles = ", ".join(sample.roles)
    text = f"{sample.name}: {roles}; {said}"
    if len(images) > 1:
        text += f" ({', '.join(sample.pictures)})"
    return Photo(text, tuple(images))


def every_run(findings: Findings, study_link: str) -> Folded | None:
    """Every run and planned run: those without a result first, with their reasons.

    `study_link` is the path from the page's folder to the study's, for links to runs.
    """
    # A point that was run again after a failure has finished.
    finished = {run.result.name for run in findings.runs}
    digits = quality_digits(findings.rows)
    unfinished: dict[str, Planned] = {}
    for point in findings.planned:
        if point.name not in finished:
            unfinished[point.name] = point
    rows = [_undone(point, study_link) for point in unfinished.values()]
    rows += [_done(run, study_link, digits) for run in findings.runs]
    if not rows:
        return None
    states = [str(row[3]) for row in rows]
    counts = Counter(states)
    headings = (
        *headings_of(
            "Run:",
            "Seed",
            "Split:",
            "State:",
            "Training time",
            "Wall time",
            "Quality",
        ),
        *headings_of("Nodes:", "Reason:"),
    )
    # Columns that are empty in every row are left out.
    shown_headings, shown_columns = [], []
    for heading, column in zip(headings, zip(*rows, strict=True), strict=True):
        if any(map(str, column)):
            shown_headings.append(heading)
            shown_columns.append(column)
    table = Table(
        tuple(shown_headings),
        tuple(zip(*shown_columns, strict=True)),
        name="runs-table",
        sortable=True,
    )
    listed = []
    for state, count in counts.items():
        listed.append(f"{count} {state}")
    title = f"Runs: {', '.join(listed)}"
    return Folded(title, (table,), "runs", page_only=True)


def reasons(findings: Findings, most: int = 3) -> list[str]:
    """Why runs ended without a result: the first few reasons, each with its number of runs.

    The advice names those with damaged records.
    """
    points: dict[str, list[str]] = {}
    for point in findings.planned:
        # One cause often ends many runs, so that runs are listed by their reason.
        if point.reason and point.state not in ("done", "corrupt"):
            reason = point.reason.rstrip(".")
            points.setdefault(reason, []).append(point.name)
    sentences = []
    for reason, names in list(points.items())[:most]:
        which = join_first(names, most=1)
        sentences.append(f"{which}: {reason}.")
    left = len(points) - most
    if left > 0:
        sentences.append(f"{left} more reasons: see `scalestudy status`.")
    return sentences


def _undone(point: Planned, study_link: str) -> tuple[str | Cell, ...]:
    link = _link(point.folder, study_link)
    name = Cell(point.name, link=link)
    state = Cell(point.state, kind=point.state)
    return (
        name,
        str(point.seed),
        _split(dict(point.swept)),
        state,
        *[""] * 4,
        point.reason or "",
    )


def _done(run: Run, study_link: str, digits: int) -> tuple[str | Cell, ...]:
    result = run.result
    source = str(run.source or "")
    state = "imported" if run.foreign else "done"
    if run.disturbed:
        # More workers than cores are the study's own doing, other programs are not.
        planned = result.oversubscribed not in (None, SHARED_CORES)
        state = "oversubscribed" if planned else "disturbed"
    small = ""
    if source not in result.name:
        small = source
    seed = "" if result.seed is None else str(result.seed)
    quality = ""
    if result.quality is not None:
        quality = format_number(result.quality, digits)
    return (
        Cell(result.name, link=_link(run.folder, study_link), small=small),
        seed,
        _split(result.swept),
        Cell(state, kind=state),
        _seconds(result.training_seconds),
        _seconds(result.wall_seconds),
        quality,
        join_first(result.hosts, most=1),
        run.disturbed or "",
    )


def _split(swept: Mapping[str, Any]) -> str:
    parts = []
    for name in REPEATS:
        if name in swept:
            *_, last = name.split(".")
            parts.append(f"{last} {swept[name]}")
    return ", ".join(parts)


def _seconds(seconds: float | None) -> str | Cell:
    if seconds is None:
        return ""
    # "1:05:00 h" and "50 s" do not sort by their texts.
    return Cell(units.duration(seconds), sort=repr(seconds))


def _link(folder: str | None, study_link: str) -> str:
    if folder is None:
        return ""
    return quote(f"{study_link}/{folder}/")
