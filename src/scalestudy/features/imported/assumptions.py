"""What is unknown and assumed about numbers that were measured elsewhere, in sentences of the report."""

import math

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import Basis
from scalestudy.report.document import Items, Section

_BASES: dict[Basis, str] = {
    "throughput": "their stated throughputs",
    "epoch": "the times of an epoch (without the first, where each is known), assuming that all epochs"
    " processed as many samples",
    "training": "whole training times, assuming that all runs did the same work",
}


def section(findings: Findings) -> Section | None:
    """Return how the files were read; None if nothing was imported."""
    lines = (*findings.assumptions, *findings.readings)
    if not lines:
        return None
    return Section("How the numbers were read", (Items(lines),), name="readings")


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
    bases: dict[Basis, None] = {}
    for row in findings.rows:
        # Rows may differ in what is known of them, so each basis is named once.
        if row.source and row.speed.steady.value:
            bases[row.basis] = None
    for basis in bases:
        sentences.append(f"Their speed-up is the ratio of {_BASES[basis]}.")
    unseeded = [run for run in imported if run.result.seed is None]
    if unseeded:
        sentences.append(
            f"The seeds of {len(unseeded)} of them are unknown, so their qualities are compared unpaired."
        )
    return sentences


def unknown_hours(findings: Findings) -> list[str]:
    """Return what intervals of speed-ups assume on hours, in a sentence; empty if no row has repeats."""
    rates = findings.measures.rate
    repeated = [values for values in rates.values.values() if len(values) > 1]
    if not repeated:
        return []
    # Variances are of logarithms of rates, where a small deviation is a relative one.
    allowed = math.sqrt(rates.rounds.between.value)
    return [
        "It is not known which runs shared an hour, so intervals of speed-ups allow for rows that differ by"
        f" {allowed:.0%}."
    ]
