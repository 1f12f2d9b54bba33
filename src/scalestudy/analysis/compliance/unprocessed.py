"""Efficiency from samples that were never processed: the whole set divided by the time of a part of it."""

from scalestudy.analysis.compliance.base import Finding, where
from scalestudy.analysis.compliance.work import Work, counts_whole_set, work_of
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Run

LEAST = 0.01
"""Change of an efficiency below which nothing is said."""


def unprocessed(findings: Findings) -> list[Finding]:
    """Rows whose throughput counts samples that were not processed, with their efficiency as it should be."""
    found = []
    groups = findings.measures.groups
    for row in findings.rows:
        speed, baseline = row.efficiency.value, row.speed.baseline
        if speed is None or baseline is None or baseline == row.key or row.basis != "throughput":
            continue
        ours, theirs = groups[row.key], groups[baseline]
        if not ours[0].foreign:
            continue
        counted, before = _share(ours[0]), _share(theirs[0])
        if counted is None or before is None:
            continue
        (share, work, sure), (base, _, base_sure) = counted, before
        corrected = speed * share / base
        if abs(corrected - speed) < LEAST * speed:
            continue
        printed = ours[0].stated.get("efficiency", speed)
        certain = sure and base_sure
        why = (
            f"the rate divides all {work.samples:,} samples by the time of {work.processed:,}"
            if certain
            else f"if the rate divides all {work.samples:,} samples by an epoch's time, as is usual, it"
            f" counts {work.samples - work.processed:,} that were never processed"
            + ("" if work.known else " where the remainder of an epoch is dropped")
        )
        found.append(
            Finding(
                "wrong" if certain else "doubtful",
                "Efficiency from samples never processed",
                where([*theirs, *ours]),
                f"{row.key.label}: {why}. Counted in samples processed, speed-up is"
                f" {corrected * row.workers / row.speed.against:.2f}.",
                f"efficiency {printed:.0%}",
                f"{corrected:.0%}",
            )
        )
    return found


def _share(run: Run) -> tuple[float, Work, bool] | None:
    """Share of the counted samples that were processed, and whether it is sure that they were counted."""
    work = work_of(run)
    if work is None:
        return None
    whole = counts_whole_set(run, work)
    return (work.share if whole is not False else 1.0), work, whole is not None and work.known
