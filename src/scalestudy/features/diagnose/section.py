"""A diagnosis as a report section and on its own: why efficiency is lost, and what to change."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from scalestudy.analysis.runs import key_of
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.analysis.table import Row
from scalestudy.features.diagnose.decomposition import slow_rank
from scalestudy.features.diagnose.records import Diagnosis, IntervalRecord, diagnoses, digest_of
from scalestudy.features.diagnose.suggestions import LEAST, suggestions
from scalestudy.report.as_terminal import terminal
from scalestudy.report.document import (
    Block,
    Document,
    Drawing,
    Folded,
    Heading,
    Items,
    Paragraph,
    Section,
    Table,
)
from scalestudy.report.figure import WIDTH, Figure, data, figure
from scalestudy.report.format import number, with_interval
from scalestudy.report.style import COLOURS
from scalestudy.report.write_document import render_document
from scalestudy.study.store import StudyFolder

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings

MOST_RANKS = 16
PARTS = {
    "input": (
        "Input", "waiting for batches, and loaders that take cores, beyond what one worker loses to them",
    ),
    "exchange": ("Exchange", "summing gradients over workers, as far as it is not hidden behind computing"),
    "imbalance": ("Imbalance", "each step waits for its slowest worker"),
    "contention": (
        "Contention", "workers of a node that slow each other down: memory bandwidth, caches, clocks",
    ),
    "fixed": ("Fixed cost", "time of a step that does not depend on the size of its slice"),
    "rest": (
        "Rest",
        "not separated by the ablations: several workers in one process, threads of the exchange",
    ),
}  # fmt: skip
"""Title and meaning of each part."""
HOW = (
    "Short ablations of the point ran in turn on the same cores and GPUs, each with one part left out: "
    "as it is; without input (one staged batch handed out again); without exchange (gradients are not "
    "summed, so weights diverge); then every worker's slice in a process of its own, all at once and one "
    "alone, and the one-worker run. The differences of their times per step are the parts: they add up to "
    "1 − E(n). Intervals are 95 % confidence intervals over rounds (Tukey's jackknife, 1958), each of which "
    "measures all ablations; one round gives none, and no suggestions."
)


@dataclass(frozen=True)
class StoredDiagnosis:
    """A diagnosis compared with its study.

    Attributes:
        diagnosis: The stored diagnosis.
        changed: Whether the point has changed since, or is no longer in the study.
        measured: E(n) of the point from the study's own runs; empty if unknown.
    """

    diagnosis: Diagnosis
    changed: bool = False
    measured: Estimate = NOTHING


def stored_diagnosis(diagnosis: Diagnosis, folder: StudyFolder, rows: Sequence[Row]) -> StoredDiagnosis:
    """Compare a diagnosis with its study and the rows of its table."""
    key = key_of(diagnosis.strategy, diagnosis.workers, dict(diagnosis.swept))
    measured = next((row.efficiency for row in rows if row.key == key), NOTHING)
    digest = next((digest_of(point) for point in folder.points() if point.name == diagnosis.point), None)
    return StoredDiagnosis(diagnosis, digest != diagnosis.digest, measured)


def diagnosis_section(findings: "Findings") -> Section | None:
    """Return the newest diagnosis of a study; None if there is none."""
    known = diagnoses(findings.folder) if findings.folder else []
    if findings.folder is None or not known:
        return None
    return section_of(stored_diagnosis(known[0], StudyFolder.open(findings.folder), findings.rows))


def rendered(stored: StoredDiagnosis, form: str, width: int = 120) -> str:
    """Return a diagnosis as text with a final newline; `form` is "table", "json", "markdown" or "html"."""
    if form == "json":
        record = stored.diagnosis.model_dump(mode="json")
        record |= {"changed": stored.changed, "measured_efficiency": asdict(stored.measured)}
        record["advice"] = [
            asdict(suggestion) | {"sentence": suggestion.sentence}
            for suggestion in suggestions(stored.diagnosis)
        ]
        return json.dumps(record, indent=1) + "\n"
    section = section_of(stored)
    document = Document(section.title, section.blocks)
    return terminal(document, width) if form == "table" else render_document(document, form)


def section_of(stored: StoredDiagnosis) -> Section:
    """Return a diagnosis as a section."""
    diagnosis = stored.diagnosis
    drawing = Drawing(partial(waterfall, diagnosis))
    blocks: list[Block] = [Paragraph(_headline(stored)), drawing, _parts(diagnosis)]
    advice = tuple(suggestion.sentence for suggestion in suggestions(diagnosis))
    if advice:
        blocks += [Paragraph("What to change, the largest possible gain first:"), Items(advice, ordered=True)]
    elif diagnosis.rounds == 1:
        text = "A single round cannot distinguish a difference from chance, so nothing is advised."
        blocks.append(Paragraph(f"{text} Measure more: `--rounds 3`."))
    else:
        blocks.append(Paragraph("No part certainly costs enough to advise a change."))
    how = Folded("How this was measured", (Paragraph(HOW),))
    blocks += [_ranks(diagnosis), how]
    return Section(f"Why efficiency is lost: {diagnosis.point}", tuple(blocks), name="diagnosis")


def _headline(stored: StoredDiagnosis) -> str:
    diagnosis = stored.diagnosis
    text = (
        f"{diagnosis.implementation} on {diagnosis.workers} workers, global batch {diagnosis.global_batch}: "
        f"E({diagnosis.workers}) = {_percent(diagnosis.efficiency)} by {diagnosis.rounds} "
        f"round{'s' * (diagnosis.rounds != 1)} of ablations on {diagnosis.host}, {diagnosis.made[:10]}; a "
        f"step takes {number(1e3 * diagnosis.step_seconds, 2)} ms instead of "
        f"{number(1e3 * diagnosis.ideal_seconds, 2)} ms."
    )
    if diagnosis.input.value >= LEAST or diagnosis.reference_input.value >= LEAST:
        text += (
            f" Input takes {_percent(diagnosis.input)} of it, and {_percent(diagnosis.reference_input)} of "
            "that of one worker; only the excess lowers efficiency."
        )
    if stored.measured.value is not None:
        text += f" The study's own runs measured {with_interval(stored.measured.scaled(100), 1)} %."
    if diagnosis.oversubscribed:
        text += f" Its times do not count: {diagnosis.oversubscribed}."
    if stored.changed:
        text += " The study has changed since: diagnose it again."
    return text


def _parts(diagnosis: Diagnosis) -> Table:
    rows = [
        (PARTS[part.name][0], _percent(part.share), number(1e3 * part.seconds, 3), PARTS[part.name][1])
        for part in diagnosis.parts
    ]
    slower = number(1e3 * (diagnosis.step_seconds - diagnosis.ideal_seconds), 3)
    lost = f"{100 * (1 - diagnosis.efficiency.value):.1f} %"
    rows.append(("Together", lost, slower, f"1 − E({diagnosis.workers})"))
    headings = (
        Heading("Part", numeric=False), Heading("Share of a step"), Heading("Time", "ms", "ms"),
        Heading("Meaning", numeric=False),
    )  # fmt: skip
    return Table(headings, tuple(rows), name="diagnosis-parts")


def _ranks(diagnosis: Diagnosis) -> Table:
    slow = slow_rank(diagnosis)
    slowest = sorted(diagnosis.ranks, key=lambda rank: -rank.seconds)[:MOST_RANKS]
    rows = tuple(
        (
            f"{rank.rank}" + " (slow)" * (rank == slow), rank.host,
            ", ".join(map(str, rank.cpus[:8])) + ", …" * (len(rank.cpus) > 8),
            number(1e3 * rank.seconds, 3), with_interval(_estimate(rank.ratio), 3),
        )
        for rank in sorted(slowest, key=lambda rank: rank.rank)
    )  # fmt: skip
    headings = (
        Heading("Rank", numeric=False), Heading("Host", numeric=False), Heading("Cores", numeric=False),
        Heading("Computing", "ms", "ms"), Heading("Over the others'"),
    )  # fmt: skip
    caption = f"A step's computing with the others, the slowest {len(rows)} of {len(diagnosis.ranks)} ranks"
    return Table(headings, rows, caption=caption, name="diagnosis-ranks")


def _percent(interval: IntervalRecord) -> str:
    return with_interval(_estimate(interval).scaled(100), 1) + " %"


def _estimate(interval: IntervalRecord) -> Estimate:
    return Estimate(interval.value, interval.low, interval.high)


def bars(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Return the bars of the waterfall from top to bottom: label, start and end in percent, and kind."""
    end = 100 * diagnosis.efficiency.value
    top = 100.0
    stairs: list[dict[str, Any]] = []
    for part in diagnosis.parts:
        share = 100 * part.share.value
        start, stop = sorted((top - share, top))
        kind = "lost" if share >= 0 else "gained"
        stairs.append({"label": PARTS[part.name][0], "start": start, "end": stop, "kind": kind})
        top -= share
    whole = {"label": "Ideal", "start": 0.0, "end": 100.0, "kind": "efficiency"}
    return [whole, *stairs, whole | {"label": f"E({diagnosis.workers})", "end": end}]


def waterfall(diagnosis: Diagnosis) -> Figure:
    """Return the waterfall from ideal efficiency to E(n), with a bar for each lost part."""
    import altair as alt

    records = bars(diagnosis)
    colours = {"lost": COLOURS[1], "gained": COLOURS[2], "efficiency": COLOURS[0]}
    used = [kind for kind in colours if any(record["kind"] == kind for record in records)]
    order = [record["label"] for record in records]
    chart = (
        alt.Chart(data(records))
        .mark_bar(height={"band": 0.7})
        .encode(
            alt.X("start:Q", title="Efficiency (%)", scale=alt.Scale(nice=False)),
            alt.X2("end:Q"),
            alt.Y("label:N", title=None, sort=order, axis=alt.Axis(labelLimit=160, minExtent=92)),
            alt.Color(
                "kind:N", title=None, scale=alt.Scale(domain=used, range=[colours[kind] for kind in used])
            ),
        )
        .properties(width=WIDTH - 60, height=30 * len(records))
    )
    caption = (
        "From a step without losses to the point's efficiency; each bar is the share of a step that one part "
        f"takes, and together they make up 1 − E({diagnosis.workers})."
    )
    return figure("diagnosis", "Where efficiency is lost", chart, caption)
