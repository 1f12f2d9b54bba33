"""The formats of a report for programs, and its further sections."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling_model import Model
from scalestudy.analysis.statistics import Estimate
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
    made = (SECTIONS.get(name)(findings) for name in SECTIONS.names())
    return [section for section in made if section is not None]


def to_csv(rows: Sequence[Row]) -> str:
    """One line for each point without its seed; cells are empty where nothing was measured."""
    return csv_of(
        columns(sorted({name for row in rows for name in row.key.swept})), records(rows)
    )


def csv_of(names: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> str:
    """Records as CSV with these columns."""
    stream = StringIO()
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    for record in lines:
        writer.writerow({name: plain(value) for name, value in record.items()})
    return stream.getvalue()


def to_json(findings: Findings) -> str:
    """The table with its notes, advice, fits and the state of every run; strict JSON without NaN."""
    document = {
        "schema_version": TABLE_SCHEMA,
        "study": findings.name,
        "confidence": 0.95,
        "rows": [
            record | {"seeds": list(row.seeds)}
            for row, record in zip(findings.rows, records(findings.rows), strict=True)
        ],
        "advice": _advice(findings),
        "quality": [
            _identity(row.key)
            | {
                "verdict": row.verdict.kind,
                "change": _ends(row.verdict.change),
                "better": row.sense.better,
            }
            for row in findings.rows
        ],
        "scaling": [_scaling(model) for model in findings.models if model.fit],
        "phases": [
            _identity(key) | {"seconds": phases}
            for key, phases in findings.phases.items()
        ],
        "points": [
            {"name": point.name, "state": point.state, "reason": point.reason}
            for point in findings.planned
        ],
        "notes": notes(findings),
        "readings": (*findings.assumptions, *findings.readings),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _advice(findings: Findings) -> dict[str, Any]:
    advice, decision = findings.advice, findings.advice.decision
    price = decision.price
    return {
        "kind": decision.kind,
        "provisional": list(decision.provisional),
        "headline": advice.headline,
        "cost": advice.cost,
        "sentences": list(advice.sentences),
        "open_questions": list(advice.open_questions),
        "strategy": advice.choice.strategy if advice.choice else None,
        "workers": advice.choice.workers if advice.choice else None,
        "swept": advice.choice.key.swept if advice.choice else None,
        "reference": _identity(decision.reference) if decision.reference else None,
        "time_of": price.basis if price else None,
        "seconds": _ends(price.seconds) if price else None,
        "cost_unit": f"{decision.bill}-hours",
        "unit_hours": _ends(price.cost) if price else None,
        "cost_efficiency": _ends(price.efficiency) if price else None,
        "cost_efficiency_target": decision.target,
        "passed_over": [
            _identity(row.key) | {"why": row.why} for row in decision.passed_over
        ],
        "rivals": [_identity(key) for key in decision.rivals],
        "planned_epochs": decision.criteria.planned.epochs,
        "planned_samples": decision.criteria.planned.samples,
        "in_longer_trainings": _switch(findings.switch) if findings.switch else None,
    }


def _switch(switch: Switch) -> dict[str, Any]:
    return _identity(switch.choice) | {
        "from_epochs": switch.epochs,
        "seconds": switch.seconds,
    }


def _scaling(model: Model) -> dict[str, Any]:
    """The scaling model of a series, with predictions beyond the measured numbers of workers."""
    assert model.fit is not None
    predicted = [model.predict(count) for count in model.counts()]
    return _identity(model.series.key, workers=False) | {
        "formula": model.fit.written,
        "terms": model.fit.parts,
        "update": model.series.update,
        "lack_of_fit": model.lack_of_fit,
        "largest_residual": model.fit.worst[1],
        "speedup_limit": _ends(model.limit),
        "against_workers": model.reference,
        "predicted": [
            {
                "workers": value.workers,
                "seconds": _ends(value.seconds),
                "speedup": _ends(value.speedup),
            }
            | {"efficiency": _ends(value.efficiency)}
            for value in predicted
            if value.kind == "extrapolated"
        ],
    }


def plain(value: Any) -> Any:
    """Convert a value to a cell that no spreadsheet treats as a formula."""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return json.dumps(value) if isinstance(value, bool | list | dict) else value


def _identity(key: Key, workers: bool = True) -> dict[str, Any]:
    return (
        {"strategy": key.strategy}
        | ({"workers": key.workers} if workers else {})
        | {"swept": key.swept}
    )


def _ends(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
