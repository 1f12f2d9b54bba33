"""The section of a report on imported numbers: what is known of them, and how their files were read."""

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import Basis
from scalestudy.report.document import Items, Section

_BASES: dict[Basis, str] = {
    "throughput": "the throughputs that they state",
    "epoch": "the mean times of an epoch, all but the first, on the assumption that all epochs processed as"
    " many samples",
    "training": "whole training times, on the assumption that all runs did the same work",
}


def section(findings: Findings) -> Section | None:
    """How the files were understood; None where all was measured here."""
    if not findings.readings:
        return None
    return Section("How the numbers were read", (Items(findings.readings),), name="readings")


def about(findings: Findings) -> list[str]:
    """What is known, and not claimed, of runs that were imported; nothing where there are none."""
    imported = [run for run in findings.runs if run.foreign]
    if not imported:
        return []
    number = "All" if len(imported) == len(findings.runs) else f"{len(imported)} of {len(findings.runs)}"
    sentences = [
        f"{number} runs were measured elsewhere. It is not claimed that each of their samples counts once,"
        " that all saw the same batches, that their times exclude start-up, compilation and evaluation, or"
        " that their quality is that of the saved model over the whole validation set.",
    ]
    bases = dict.fromkeys(row.basis for row in findings.rows if row.source and row.speed.steady.value)
    sentences += [f"Their speed-up is the ratio of {_BASES[basis]}." for basis in bases]
    unseeded = sum(run.result.seed is None for run in imported)
    if unseeded:
        sentences.append(
            f"The seeds of {unseeded} of them are unknown, so their qualities are compared unpaired."
        )
    return sentences
