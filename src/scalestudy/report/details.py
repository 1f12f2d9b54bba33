"""Parts of a report's page in folded sections: all metrics, samples and every run."""

from base64 import b64decode
from collections import Counter
from collections.abc import Mapping, Sequence
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
from scalestudy.store.model_record import GalleryRecord, GallerySample
from scalestudy.store.records import SHARED_CORES
from scalestudy.util import units

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
    tables = [_metrics(groups), *_classes(key, groups[key])]
    return [table for table in tables if table.rows and len(table.headings) > 1]


def _named(
    title: str, corner: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]
) -> Table:
    headings = (Heading(corner, numeric=False), *map(Heading, columns))
    return Table(headings, tuple(rows), title)


def _metrics(groups: Mapping[Key, Sequence[Run]]) -> Table:
    names = whole_metrics([run for runs in groups.values() for run in runs])
    names = names if len(names) > 1 else []
    rows = [
        (key.label, *(_mean(runs, name) for name in names))
        for key, runs in groups.items()
    ]
    return _named(
        "Metrics over the validation set",
        "Row",
        [metric_label(name) for name in names],
        rows,
    )


def _classes(key: Key, runs: Sequence[Run]) -> list[Table]:
    classes, values = runs[0].result.class_names, runs[0].result.validation
    if len(classes) > MOST_CLASSES:
        return []
    metrics = [
        name
        for name in whole_metrics(runs[:1])
        if values.keys() & set(class_keys(name, classes))
    ]
    rows = [
        (label, *(_mean(runs, class_keys(name, classes)[place]) for name in metrics))
        for place, label in enumerate(classes)
    ]
    return [
        _named(
            f"By class: {key.label}",
            "Class",
            [metric_label(name) for name in metrics],
            rows,
        )
    ]


def _mean(runs: Sequence[Run], name: str) -> str:
    known = [
        run.result.validation[name] for run in runs if name in run.result.validation
    ]
    finite = [value for value in known if isfinite(value)]
    return format_number(sum(finite) / len(finite) if finite else None, 4)


def sample_gallery(findings: Findings) -> Folded | None:
    """Samples of one run: of the recommended row, or of the first run that saved any."""
    choice = findings.advice.choice
    advised = [run for run in findings.runs if choice and key_of_run(run) == choice.key]
    for run in [*advised, *findings.runs]:
        if run.gallery is not None and run.gallery.samples:
            title = f"Samples predicted by {run.result.name}"
            return Folded(title, gallery_blocks(run.gallery), "gallery", page_only=True)
    return None


def gallery_blocks(record: GalleryRecord) -> tuple[Block, ...]:
    """The best, median and worst validation samples."""
    among = (
        f"{record.considered} of {record.of}"
        if record.considered < record.of
        else f"all {record.of}"
    )
    text = f"Chosen from {among} validation samples by the loss of each sample."
    text += " Weights of the best epoch." if record.weights == "best" else ""
    colours = [Paragraph(COLOURS_OF_MASKS)] if record.kind == "masks" else []
    return Paragraph(text), *colours, Photos(tuple(map(_photo, record.samples)))


def gallery_document(record: GalleryRecord, label: str) -> Document:
    """The samples of a model as a separate page titled `label`."""
    return Document(
        label, gallery_blocks(record), "Best, median and worst validation samples"
    )


def _photo(sample: GallerySample) -> Photo:
    facts = [f"loss {format_number(sample.loss, 4)}"]
    if sample.predicted is not None:
        predicted = f"{sample.predicted} ({format_number(100 * (sample.probability or 0), 0)} %)"
        wrong = sample.truth is not None and sample.truth != sample.predicted
        facts.append(
            f"predicted {predicted}, truth {sample.truth}"
            if wrong
            else f"{predicted}, correct"
        )
    images = tuple(
        (b64decode(content), f"{name} of {sample.name}: {'; '.join(facts)}")
        for name, content in sample.pictures.items()
    )
    what = f" ({', '.join(sample.pictures)})" if len(images) > 1 else ""
    return Photo(
        f"{sample.name}: {', '.join(sample.roles)}; {'; '.join(facts)}{what}", images
    )


def every_run(findings: Findings, study_link: str) -> Folded | None:
    """Every run and planned run: those without a result first, with their reasons.

    `study_link` is the path from the page's folder to the study's, for links to runs.
    """
    names = {run.result.name for run in findings.runs}
    undone = [
        point
        for point in {p.name: p for p in findings.planned}.values()
        if point.name not in names
    ]
    digits = max((row.digits for row in findings.rows), default=3)
    rows = [_undone(point, study_link) for point in undone]
    rows += [_done(run, study_link, digits) for run in findings.runs]
    if not rows:
        return None
    counts = Counter(str(row[3]) for row in rows)
    headings = (
        *headings_of(
            "Run:", "Seed", "Split:", "State:", "Training time", "Wall time", "Quality"
        ),
        *headings_of("Nodes:", "Reason:"),
    )
    shown = [
        place for place in range(len(headings)) if any(str(row[place]) for row in rows)
    ]
    table = Table(
        tuple(headings[place] for place in shown),
        tuple(tuple(row[place] for place in shown) for row in rows),
        name="runs-table",
        sortable=True,
    )
    title = f"Runs: {', '.join(f'{count} {state}' for state, count in counts.items())}"
    return Folded(title, (table,), "runs", page_only=True)


def reasons(findings: Findings, most: int = 3) -> list[str]:
    """Why runs ended without a result: the first few reasons, each with its number of runs.

    The advice names those with damaged records.
    """
    points: dict[str, list[str]] = {}
    for point in findings.planned:
        if point.reason and point.state not in ("done", "corrupt"):
            points.setdefault(point.reason.rstrip("."), []).append(point.name)
    left = len(points) - most
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {reason}."
        for reason, names in list(points.items())[:most]
    ] + [f"{left} more reasons: see `scalestudy status`."] * (left > 0)


def _undone(point: Planned, study_link: str) -> tuple[str | Cell, ...]:
    name = Cell(point.name, link=_link(point.folder, study_link))
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
    result, source = run.result, str(run.source or "")
    state = "imported" if run.foreign else "done"
    if run.disturbed:
        planned = result.oversubscribed not in (None, SHARED_CORES)
        state = "oversubscribed" if planned else "disturbed"
    more = f" and {len(result.hosts) - 1} more" if len(result.hosts) > 1 else ""
    return (
        Cell(
            result.name,
            link=_link(run.folder, study_link),
            small=source if source not in result.name else "",
        ),
        "" if result.seed is None else str(result.seed),
        _split(result.swept),
        Cell(state, kind=state),
        _seconds(result.training_seconds),
        _seconds(result.wall_seconds),
        "" if result.quality is None else format_number(result.quality, digits),
        f"{result.hosts[0]}{more}" if result.hosts else "",
        run.disturbed or "",
    )


def _split(swept: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name.split('.')[-1]} {swept[name]}" for name in REPEATS if name in swept
    )


def _seconds(seconds: float | None) -> str | Cell:
    return "" if seconds is None else Cell(units.duration(seconds), sort=repr(seconds))


def _link(folder: str | None, study_link: str) -> str:
    return "" if folder is None else quote(f"{study_link}/{folder}/")
