"""A diagnosis as a report section and on its own: why efficiency is lost, and what to change."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, NamedTuple

from scalestudy.analysis.estimate import NOTHING, Estimate
from scalestudy.analysis.runs import key_of
from scalestudy.analysis.study_table import Row
from scalestudy.features.diagnose.diagnosis_record import (
    Diagnosis,
    IntervalRecord,
    diagnoses,
    digest_of,
)
from scalestudy.features.diagnose.suggestions import LEAST, suggestions
from scalestudy.report.as_terminal import terminal
from scalestudy.report.document import (
    Block,
    Document,
    Folded,
    Heading,
    Items,
    Paragraph,
    Section,
    Table,
    headings_of,
)
from scalestudy.report.number_format import format_number, with_interval
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.text import plural

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings


PARTS = {
    "input": (
        "Input",
        "waiting for batches, and loaders that take cores, beyond what one worker loses to them",
    ),
    "exchange": (
        "Exchange",
        "summing gradients over workers, as far as it does not overlap with computing",
    ),
    "imbalance": ("Imbalance", "each step waits for its slowest worker"),
    "contention": (
        "Contention",
        "workers of a node that slow each other down: memory bandwidth, caches, clocks",
    ),
    "fixed": (
        "Fixed cost",
        "time of a step that does not depend on the size of its slice",
    ),
    "rest": (
        "Rest",
        "not separated by the ablations: several workers in one process, threads of the exchange",
    ),
}
"""Title and meaning of each part."""
HOW = (
    "Short ablations of the point ran in turn on the same cores and GPUs, each with one part left out: "
    "as it is; without input (one staged batch handed out again); without exchange (gradients are not "
    "summed, so weights diverge); then every worker's slice in a process of its own, all at once and one "
    "alone, and the one-worker run. The differences of their times per step are the parts: they add up to "
    "1 − E(n). Intervals are 95 % confidence intervals over rounds (Tukey's jackknife, 1958), each of which "
    "measures all ablations; one round gives none, and no suggestions."
)


class StoredDiagnosis(NamedTuple):
    """A diagnosis; whether its point has changed since or is gone; E(n) from the study's own runs."""

    diagnosis: Diagnosis
    changed: bool = False
    measured: Estimate = NOTHING


def stored_diagnosis(
    diagnosis: Diagnosis,
    folder: StudyFolder,
    rows: Sequence[Row],
) -> StoredDiagnosis:
    """Compare a diagnosis with its study and the rows of its table."""
    key = key_of(diagnosis.strategy, diagnosis.workers, dict(diagnosis.swept))
    measured = NOTHING
    for row in rows:
        if row.key == key:
            measured = row.efficiency
            break
    # A point that is gone has no digest, so its diagnosis counts as changed.
    digest = None
    for point in folder.points():
        if point.name == diagnosis.point:
            digest = digest_of(point)
            break
    changed = digest != diagnosis.digest
    return StoredDiagnosis(diagnosis, changed, measured)


def diagnosis_section(findings: "Findings") -> Section | None:
    """Return the newest diagnosis of a study; None if there is none."""
    if findings.folder is None:
        return None
    known = diagnoses(findings.folder)
    if not known:
        return None
    folder = StudyFolder.open(findings.folder)
    return section_of(stored_diagnosis(known[0], folder, findings.rows))


def render(
    stored: StoredDiagnosis,
    form: Literal["table", "json"],
    width: int = 120,
) -> str:
    """Return a diagnosis as text with a final newline."""
    if form == "json":
        record = stored.diagnosis.model_dump(mode="json")
        record |= {
            "changed": stored.changed,
            "measured_efficiency": asdict(stored.measured),
        }
        record["advice"] = []
        for change in suggestions(stored.diagnosis):
            sentence = {"sentence": change.sentence}
            record["advice"].append(change._asdict() | sentence)
        return json.dumps(record, indent=1) + "\n"
    section = section_of(stored)
    return terminal(Document(section.title, section.blocks), width)


def section_of(stored: StoredDiagnosis) -> Section:
    """Return a diagnosis as a section."""
    diagnosis = stored.diagnosis
    blocks: list[Block] = [Paragraph(_headline(stored)), _parts(diagnosis)]
    advice = [suggestion.sentence for suggestion in suggestions(diagnosis)]
    if diagnosis.oversubscribed:
        text = (
            "So nothing is advised. Diagnose it where every worker has its own cores."
        )
        blocks.append(Paragraph(text))
    elif advice:
        blocks.append(Paragraph("What to change, the largest possible gain first:"))
        blocks.append(Items(tuple(advice), ordered=True))
    elif diagnosis.rounds == 1:
        text = "A single round cannot distinguish a difference from chance, so nothing is advised."
        blocks.append(Paragraph(f"{text} Measure more: `--rounds 3`."))
    else:
        blocks.append(Paragraph("No part certainly costs enough to advise a change."))
    blocks.append(Folded("How this was measured", (Paragraph(HOW),)))
    return Section(
        f"Why efficiency is lost: {diagnosis.point}",
        tuple(blocks),
        name="diagnosis",
    )


def _headline(stored: StoredDiagnosis) -> str:
    diagnosis = stored.diagnosis
    text = (
        f"{diagnosis.implementation} on {diagnosis.workers} workers, global batch {diagnosis.global_batch}: "
        f"E({diagnosis.workers}) = {_percent(diagnosis.efficiency)} by {diagnosis.rounds} "
        f"{plural('round', diagnosis.rounds)} of ablations on {diagnosis.host}, {diagnosis.made[:10]}; a "
        f"step takes {format_number(1e3 * diagnosis.step_seconds, 2)} ms instead of "
        f"{format_number(1e3 * diagnosis.ideal_seconds, 2)} ms."
    )
    if diagnosis.input.value >= LEAST or diagnosis.reference_input.value >= LEAST:
        text += (
            f" Input takes {_percent(diagnosis.input)} of it, and {_percent(diagnosis.reference_input)} of "
            "that of one worker; only the excess lowers efficiency."
        )
    if stored.measured.value is not None:
        text += f" The study's own runs measured {with_interval(stored.measured.scaled(100), 1)} %."
    if diagnosis.oversubscribed:
        text += f" Its times are excluded: {diagnosis.oversubscribed}."
    if stored.changed:
        text += " The study has changed since: diagnose it again."
    return text


def _parts(diagnosis: Diagnosis) -> Table:
    rows = []
    for part in diagnosis.parts:
        name, meaning = PARTS[part.name]
        milliseconds = format_number(1e3 * part.seconds, 3)
        rows.append((name, _percent(part.share), milliseconds, meaning))
    slower = format_number(1e3 * (diagnosis.step_seconds - diagnosis.ideal_seconds), 3)
    lost = f"{100 * (1 - diagnosis.efficiency.value):.1f} %"
    rows.append(("Together", lost, slower, f"1 − E({diagnosis.workers})"))
    time = Heading("Time", "ms", "ms")
    headings = (
        *headings_of("Part:", "Share of a step"),
        time,
        *headings_of("Meaning:"),
    )
    return Table(headings, tuple(rows), name="diagnosis-parts")


def _percent(interval: IntervalRecord) -> str:
    low = interval.low
    high = interval.high
    # An interval of more than a whole step says nothing; its ends would only mislead.
    if low is not None and high is not None and low < 0 < high and high - low > 1:
        return "not resolved"
    return with_interval(_estimate(interval).scaled(100), 1) + " %"


def _estimate(interval: IntervalRecord) -> Estimate:
    return Estimate(interval.value, interval.low, interval.high)
