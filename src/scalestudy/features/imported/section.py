"""The report section on imported numbers: how their files were read, and what is assumed."""

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import Basis
from scalestudy.report.document import Items, Section

_BASES: dict[Basis, str] = {
    "throughput": "their stated throughputs",
    "epoch": "the mean times of an epoch, without the first, assuming that all epochs processed as many"
    " samples",
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
    number = "All" if len(imported) == len(findings.runs) else f"{len(imported)} of {len(findings.runs)}"
    sentences = [
        f"{number} runs were measured elsewhere. It is not known whether each sample counts once, whether all"
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
