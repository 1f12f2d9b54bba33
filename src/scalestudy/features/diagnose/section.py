"""The section of a diagnosis: why efficiency is lost, and what to do about it."""

from typing import TYPE_CHECKING

from scalestudy.analysis.statistics import Estimate
from scalestudy.features.diagnose.diagnosed import slow_rank
from scalestudy.features.diagnose.records import Diagnosis, Interval
from scalestudy.features.diagnose.remedies import LEAST, remedies, sentence
from scalestudy.features.diagnose.waterfall import TITLES, waterfall
from scalestudy.report.document import Block, Drawing, Folded, Heading, Items, Paragraph, Section, Table
from scalestudy.report.format import number, with_interval

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings
    from scalestudy.analysis.measures import Measures
    from scalestudy.features.diagnose.kept import Kept

MOST_RANKS = 16
MEANINGS = {
    "input": "waiting for batches, and loaders that take cores, beyond what one worker loses to them",
    "exchange": "summing gradients over workers, as far as it is not hidden behind computing",
    "imbalance": "each step waits for its slowest worker",
    "contention": "workers of a node that slow each other down: memory bandwidth, caches, clocks",
    "fixed": "what a step costs whatever the size of its slice",
    "rest": "what the twins do not tell apart: several workers in one process, threads of the exchange",
}
HOW = (
    "Short twins of the point were run in turn on the same cores and GPUs, each with something left out: as "
    "it is; without input (one staged batch handed out again); without exchange (no worker hears of others: "
    "their weights part); then every worker's slice in a process of its own, all at once and one alone, "
    "and the one-worker run. The differences of their times per step are the parts: they add up to 1 − E(n).",
    "Intervals hold with 95 % over rounds (Tukey's jackknife, 1958): each round measures all twins. One "
    "round gives none.",
    "POP's factors (https://pop-coe.eu/node/69) multiply to E(n). A worker's useful time is its computing, "
    "beside the others and without exchange, and its waiting for input.",
    "Where a call of the compiled function computes several steps, the slowest worker is that of a call.",
)


def diagnosis_section(findings: "Findings") -> Section | None:
    """The last diagnosis of a study; None without one."""
    if findings.diagnosis is None:
        return None
    return section_of(findings.diagnosis, findings.measures)


def section_of(kept: "Kept", measures: "Measures | None" = None) -> Section:
    """A diagnosis as a section.

    Args:
        kept: The diagnosis in its study.
        measures: Of the study, for what it has measured of the remedies.
    """
    found = kept.diagnosis
    blocks: list[Block] = [Paragraph(_headline(kept)), Drawing(waterfall(found)), _parts(found)]
    advice = tuple(sentence(each) for each in remedies(found, measures))
    if advice:
        blocks += [Paragraph("What to do, by the most that it can gain:"), Items(advice, ordered=True)]
    else:
        blocks.append(Paragraph("No part is certain to cost enough to advise anything against it."))
    blocks += [_factors(found), *_ranks(found), Folded("How this was measured", tuple(map(Paragraph, HOW)))]
    return Section(f"Why efficiency is lost: {found.point}", tuple(blocks), name="diagnosis")


def _headline(kept: "Kept") -> str:
    found = kept.diagnosis
    rounds = f"{found.rounds} round{'s' * (found.rounds != 1)}"
    said = (
        f"{found.implementation} on {found.workers} workers, global batch {found.global_batch}: "
        f"E({found.workers}) = {_percent(found.efficiency)} by {rounds} of twins on {found.host}, "
        f"{found.made[:10]}; a step takes {number(1e3 * found.step_seconds, 2)} ms instead of "
        f"{number(1e3 * found.ideal_seconds, 2)} ms."
    )
    if found.input.value >= LEAST or found.reference_input.value >= LEAST:
        said += (
            f" Input takes {_percent(found.input)} of it, and {_percent(found.reference_input)} of the one "
            "worker's: only what is beyond that lowers efficiency."
        )
    if kept.measured.value is not None:
        said += f" The study's own runs measured {with_interval(kept.measured.scaled(100), 1)} %."
    if found.oversubscribed:
        said += f" Its times say little: {found.oversubscribed}."
    if kept.changed:
        said += " The study has changed since: diagnose it again."
    return said


def _parts(found: Diagnosis) -> Table:
    rows = [
        (TITLES[part.name], _percent(part.share), number(1e3 * part.seconds, 3), MEANINGS[part.name])
        for part in found.parts
    ]
    lost = 1 - found.efficiency.value
    slower = found.step_seconds - found.ideal_seconds
    rows.append(("Together", f"{100 * lost:.1f} %", number(1e3 * slower, 3), f"1 − E({found.workers})"))
    headings = (
        Heading("Part", numeric=False), Heading("Of a step"), Heading("Time", "ms", "ms"),
        Heading("What it is", numeric=False),
    )  # fmt: skip
    return Table(headings, tuple(rows), name="diagnosis-parts")


def _factors(found: Diagnosis) -> Table:
    rows = [(each.name.capitalize(), _percent(each.value)) for each in found.factors]
    rows.append((f"Their product, E({found.workers})", _percent(found.efficiency)))
    caption = "POP's factors"
    return Table((Heading(caption, numeric=False), Heading("Value")), tuple(rows), name="diagnosis-factors")


def _ranks(found: Diagnosis) -> list[Block]:
    slow = slow_rank(found)
    ranks = sorted(found.ranks, key=lambda rank: -rank.seconds)[:MOST_RANKS]
    rows = tuple(
        (
            f"{rank.rank}" + (" (slow)" if slow is not None and rank.rank == slow.rank else ""),
            rank.host, _listed(rank.cpus), number(1e3 * rank.seconds, 3), _ratio(rank.ratio),
        )
        for rank in sorted(ranks, key=lambda rank: rank.rank)
    )  # fmt: skip
    headings = (
        Heading("Rank", numeric=False), Heading("Host", numeric=False), Heading("Cores", numeric=False),
        Heading("Computing", "ms", "ms"), Heading("Over the others'"),
    )  # fmt: skip
    of = (
        f"the slowest {len(ranks)} of {len(found.ranks)} ranks"
        if len(ranks) < len(found.ranks)
        else "all ranks"
    )
    return [
        Table(headings, rows, caption=f"A step's computing beside the others, {of}", name="diagnosis-ranks")
    ]


def _percent(interval: Interval) -> str:
    return with_interval(_estimate(interval).scaled(100), 1) + " %"


def _ratio(interval: Interval) -> str:
    return with_interval(_estimate(interval), 3)


def _estimate(interval: Interval) -> Estimate:
    return Estimate(interval.value, interval.low, interval.high)


def _listed(cpus: tuple[int, ...]) -> str:
    return ", ".join(map(str, cpus[:8])) + ", …" * (len(cpus) > 8)
