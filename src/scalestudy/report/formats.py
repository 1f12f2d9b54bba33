"""The formats of a report for programs, and its further sections."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling_model import Model
from scalestudy.analysis.study_table import Row, columns, records
from scalestudy.analysis.switching import Switch
from scalestudy.report.document import Section
from scalestudy.report.notes import notes
from scalestudy.util.registry import Registry

SECTIONS: Registry[Callable[[Findings], Section | None]] = Registry(
    "scalestudy.sections"
)
"""In the order in which they are shown. A function returns None if the study has no data for its section."""
TABLE_SCHEMA = 1
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets run a text that starts with one of these as a formula, unless an apostrophe precedes it."""


def sections(findings: Findings) -> list[Section]:
    """The sections for which this study has data."""
    found = []
    for name in SECTIONS.names():
        section = SECTIONS.get(name)(findings)
        if section is not None:
            found.append(section)
    return found


def to_csv(rows: Sequence[Row]) -> str:
    """One line for each point without its seed; cells are empty where nothing was measured."""
    swept: set[str] = set()
    for row in rows:
        swept.update(row.key.swept)
    return csv_of(columns(sorted(swept)), records(rows))


def csv_of(names: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> str:
    """Records as CSV with these columns."""
    stream = StringIO()
    # Python's default line ends are those of Windows, which diffs and scripts trip over.
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    for record in lines:
        cells = {}
        for name, value in record.items():
            cells[name] = plain(value)
        writer.writerow(cells)
    return stream.getvalue()


def to_json(findings: Findings) -> str:
    """The table with its notes, advice, fits and the state of every run; strict JSON without NaN."""
    scaling = []
    for model in findings.models:
        if model.fit:
            scaling.append(_scaling(model))
    document = {
        "schema_version": TABLE_SCHEMA,
        "study": findings.name,
        "confidence": 0.95,
        "rows": _rows(findings.rows),
        "advice": _advice(findings),
        "quality": [_quality(row) for row in findings.rows],
        "scaling": scaling,
        "phases": _phases(findings),
        "points": _points(findings),
        "notes": notes(findings),
        "readings": (*findings.assumptions, *findings.readings),
    }
    # NaN is no JSON: readers other than Python's refuse the whole file.
    return (
        json.dumps(
            document,
            indent=2,
            ensure_ascii=False,
            allow_nan=False,
        )
        + "\n"
    )


def _rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    table = records(rows)
    for row, record in zip(rows, table, strict=True):
        record["seeds"] = list(row.seeds)
    return table


def _quality(row: Row) -> dict[str, Any]:
    return _identity(row.key) | {
        "verdict": row.verdict.kind,
        "change": _ends(row.verdict.change),
        "better": row.sense.better,
    }


def _phases(findings: Findings) -> list[dict[str, Any]]:
    table = []
    for key, phases in findings.phases.items():
        entry = _identity(key)
        entry["seconds"] = phases
        table.append(entry)
    return table


def _points(findings: Findings) -> list[dict[str, Any]]:
    table = []
    for point in findings.planned:
        table.append(
            {
                "name": point.name,
                "state": point.state,
                "reason": point.reason,
            }
        )
    return table


def _advice(findings: Findings) -> dict[str, Any]:
    advice = findings.advice
    decision = findings.advice.decision
    # Programs find the same keys in every table, with null where nothing is advised.
    strategy = workers = swept = reference = switch = None
    basis = seconds = cost = efficiency = None
    if advice.choice:
        key = advice.choice.key
        strategy = key.strategy
        workers = key.workers
        swept = key.swept
    if decision.reference:
        reference = _identity(decision.reference)
    if price := decision.price:
        basis = price.basis
        seconds = _ends(price.seconds)
        cost = _ends(price.cost)
        efficiency = _ends(price.efficiency)
    if findings.switch:
        switch = _switch(findings.switch)
    passed_over = []
    for row in decision.passed_over:
        entry = _identity(row.key)
        entry["why"] = row.why
        passed_over.append(entry)
    return {
        "kind": decision.kind,
        "provisional": list(decision.provisional),
        "headline": advice.headline,
        "cost": advice.cost,
        "sentences": list(advice.sentences),
        "open_questions": list(advice.open_questions),
        "strategy": strategy,
        "workers": workers,
        "swept": swept,
        "reference": reference,
        "time_of": basis,
        "seconds": seconds,
        "cost_unit": f"{decision.bill}-hours",
        "unit_hours": cost,
        "cost_efficiency": efficiency,
        "cost_efficiency_target": decision.target,
        "passed_over": passed_over,
        "rivals": [_identity(key) for key in decision.rivals],
        "planned_epochs": decision.criteria.planned.epochs,
        "planned_samples": decision.criteria.planned.samples,
        "in_longer_trainings": switch,
    }


def _switch(switch: Switch) -> dict[str, Any]:
    return _identity(switch.choice) | {
        "from_epochs": switch.epochs,
        "seconds": switch.seconds,
    }


def _scaling(model: Model) -> dict[str, Any]:
    """The scaling model of a series, with predictions beyond the measured numbers of workers."""
    assert model.fit is not None
    predicted = []
    for count in model.counts():
        # Measured numbers are in the rows already.
        if count not in model.series.different:
            prediction = model.predict(count)
            predicted.append(
                {
                    "workers": count,
                    "seconds": _ends(prediction.seconds),
                    "speedup": _ends(prediction.speedup),
                    "efficiency": _ends(prediction.efficiency),
                }
            )
    series = {"strategy": model.series.key.strategy, "swept": model.series.key.swept}
    return series | {
        "formula": model.fit.written,
        "terms": model.fit.parts,
        "update": model.series.update,
        "lack_of_fit": model.lack_of_fit,
        "largest_residual": model.fit.worst[1],
        "speedup_limit": _ends(model.limit),
        "against_workers": model.reference,
        "predicted": predicted,
    }


def plain(value: Any) -> Any:
    """Convert a value to a cell that no spreadsheet treats as a formula."""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    # As in the JSON report, so that a program reads both alike.
    if isinstance(value, bool | list | dict):
        return json.dumps(value)
    return value


def _identity(key: Key) -> dict[str, Any]:
    return {"strategy": key.strategy, "workers": key.workers, "swept": key.swept}


def _ends(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
