"""What is known, and what is not claimed, of numbers that were taken elsewhere."""

from collections.abc import Sequence

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.rates import Basis
from scalestudy.analysis.runs import Run

_BASES: dict[Basis, str] = {
    "throughput": "the throughputs that they state",
    "epoch": "the mean times of an epoch, all but the first, which takes for granted that all processed as"
    " many samples in it",
    "training": "whole training times, which takes for granted that all did the same work",
}
MOST_FILES = 6


def foreign_notes(findings: Findings) -> list[str]:
    """Sentences about rows that were not measured here; nothing where all were."""
    foreign = [run for run in findings.runs if run.foreign]
    if not foreign:
        return []
    number = "All" if len(foreign) == len(findings.runs) else f"{len(foreign)} of {len(findings.runs)}"
    bases = dict.fromkeys(row.basis for row in findings.rows if row.source and row.speed.steady.value)
    sentences = [
        f"{number} runs were measured elsewhere, and taken from {_files(foreign)}. Of them it is known what"
        " these files say. It is not claimed that every sample counts once, that all saw the same batches,"
        " that start-up, compilation and evaluation are left out of their times, or that quality is that of"
        " the saved model over the whole validation set.",
        *(f"Their speed-up is the ratio of {_BASES[basis]}." for basis in bases),
    ]
    unknown = sum(run.result.seed is None for run in foreign)
    if unknown:
        sentences.append(
            f"The seeds of {unknown} of them are not known: their qualities are held against others unpaired."
        )
    return sentences


def _files(runs: Sequence[Run]) -> str:
    found: dict[str, str] = {}
    for run in runs:
        if run.source is not None:
            found[run.source.file] = run.source.kind
    kinds = list(dict.fromkeys(kind for kind in found.values() if kind))
    alike = len(kinds) == 1
    names = [file if alike or not kind else f"{file} ({kind})" for file, kind in found.items()]
    rest = f" and {len(names) - MOST_FILES} files more" if len(names) > MOST_FILES else ""
    return ", ".join(names[:MOST_FILES]) + rest + (f" ({kinds[0]})" if alike else "")
