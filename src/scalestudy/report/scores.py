"""All metrics of a study, the values of each class and confusion matrices, as tables of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.recorded import whole_metrics
from scalestudy.analysis.runs import Key, Run, metric_label
from scalestudy.report.format import number
from scalestudy.study.metrics import class_keys

DIGITS = 4
MOST_CLASSES = 50
"""Classes whose values and confusions are shown; beyond, they are in result.json alone."""


@dataclass(frozen=True)
class ScoreTable:
    """A table with names of its rows.

    Attributes:
        title: What it shows.
        corner: What the rows are.
        columns: Names of the others.
        lines: Name and cells of each row.
    """

    title: str
    corner: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]


def score_tables(findings: Findings) -> list[ScoreTable]:
    """Every row's metrics; then classes and confusions of the advised row, or else of the first.

    Values are means over a row's runs, and confusions sums.
    """
    groups = findings.measures.groups
    if not groups:
        return []
    choice = findings.advice.choice
    shown = choice.key if choice else next(iter(groups))
    tables = [_metrics(groups), _classes(shown, groups[shown]), *_confusions(shown, groups[shown])]
    return [table for table in tables if table.lines and table.columns]


def _metrics(groups: Mapping[Key, Sequence[Run]]) -> ScoreTable:
    names = whole_metrics([run for runs in groups.values() for run in runs])
    lines = tuple((key.label, tuple(_mean(runs, name) for name in names)) for key, runs in groups.items())
    columns = tuple(metric_label(name) for name in names) if len(names) > 1 else ()
    return ScoreTable("Metrics over the validation set", "Row", columns, lines)


def _classes(key: Key, runs: Sequence[Run]) -> ScoreTable:
    classes, values = runs[0].result.class_names, runs[0].result.validation
    metrics = [name for name in whole_metrics(runs[:1]) if values.keys() & set(class_keys(name, classes))]
    lines = tuple(
        (label, tuple(_mean(runs, class_keys(name, classes)[place]) for name in metrics))
        for place, label in enumerate(classes)
        if len(classes) <= MOST_CLASSES
    )
    return ScoreTable(f"By class: {key.label}", "Class", tuple(map(metric_label, metrics)), lines)


def _confusions(key: Key, runs: Sequence[Run]) -> list[ScoreTable]:
    result = runs[0].result
    if len(result.class_names) > MOST_CLASSES:
        return []
    tables = []
    for name in result.validation_matrices:
        matrices = [run.result.validation_matrices.get(name, []) for run in runs]
        cells = [[sum(column) for column in zip(*rows, strict=True)] for rows in zip(*matrices, strict=True)]
        lines = tuple(
            (label, tuple(number(float(count), 0) for count in row))
            for label, row in zip(result.class_names, cells, strict=True)
        )
        title = f"{metric_label(name).capitalize()}, labels by true class (rows) and predicted: {key.label}"
        tables.append(ScoreTable(title, "True class", tuple(result.class_names), lines))
    return tables


def _mean(runs: Sequence[Run], name: str) -> str:
    found = [run.result.validation[name] for run in runs if name in run.result.validation]
    finite = [value for value in found if isfinite(value)]
    return number(sum(finite) / len(finite) if finite else None, DIGITS)
