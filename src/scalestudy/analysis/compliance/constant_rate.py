"""A throughput that stays the same while workers grow: likely that of one worker."""

from scalestudy.analysis.compliance.base import Finding, where
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.table import Row

NEAR = 0.35
"""How far a rate may move over the sweep, as a share, and still be that of one worker."""


def constant_rate(findings: Findings) -> list[Finding]:
    """One finding for each series of foreign numbers whose rate does not grow with the workers."""
    series: dict[tuple[str, str], list[Row]] = {}
    for row in findings.rows:
        if row.source and row.basis == "throughput" and row.throughput.value:
            series.setdefault((row.strategy, row.key.variant), []).append(row)
    found = []
    for rows in series.values():
        few, many = rows[0], rows[-1]
        first, last, growth = few.throughput.value, many.throughput.value, many.workers / few.workers
        if not first or not last or growth < 4 or abs(last / first - 1) > NEAR:
            continue
        runs = [run for row in (few, many) for run in findings.measures.groups[row.key]]
        found.append(
            Finding(
                "doubtful",
                "A rate that does not grow",
                where(runs),
                f"{many.key.label} has the throughput of {few.key.label}, with {growth:g} times the workers."
                " If it is that of one worker, all of them together are so many times as fast; then say"
                " --column throughput=NAME with a name as images_per_second_per_gpu.",
                f"speed-up {last / first:.2f}",
                f"{last / first * growth:.2f}",
            )
        )
    return found
