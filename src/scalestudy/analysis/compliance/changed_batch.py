"""A global batch that grows with the workers: fewer updates, and a rate that has to follow."""

from collections.abc import Sequence

from scalestudy.analysis.compliance.base import Finding, where
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Run
from scalestudy.analysis.table import Row

SAME = 0.01


def changed_batch(findings: Findings) -> list[Finding]:
    """One finding for each series whose global batch is not the same at all counts."""
    series: dict[tuple[str, str], list[Row]] = {}
    for row in findings.rows:
        if row.global_batch:
            series.setdefault((row.strategy, row.key.variant), []).append(row)
    found = []
    for rows in series.values():
        few, many = rows[0], rows[-1]
        if not few.global_batch or not many.global_batch or many.global_batch <= few.global_batch:
            continue
        groups = findings.measures.groups
        runs = [*groups[few.key], *groups[many.key]]
        rates = _rate(groups[few.key]), _rate(groups[many.key])
        if rates[0] is None or rates[1] is None:
            severity, why = "doubtful", "whether the learning rate was scaled is not known"
        elif abs(rates[1] / rates[0] - 1) < SAME:
            severity, why = "doubtful", f"the learning rate stays at {rates[0]:g}"
        else:
            severity, why = "note", f"the learning rate goes from {rates[0]:g} to {rates[1]:g}"
        updates = _updates(groups[few.key]), _updates(groups[many.key])
        less = f", {updates[0] / updates[1]:.3g} times fewer updates" if updates[0] and updates[1] else ""
        fewer = f", in {updates[0]:,} and {updates[1]:,} updates" if updates[0] and updates[1] else ""
        found.append(
            Finding(
                "doubtful" if severity == "doubtful" else "note",
                "Changed batch",
                where(runs),
                f"{few.key.label} to {many.key.label}: the global batch grows from {few.global_batch:,} to"
                f" {many.global_batch:,}{fewer}, and {why}{_moved(few, many)}. A quality that changes is the"
                " batch's doing as well as the strategy's.",
                "the same training",
                f"{many.global_batch / few.global_batch:.3g} times the batch{less}",
            )
        )
    return found


def _moved(few: Row, many: Row) -> str:
    """How the quality moves; empty where it is not known."""
    if few.quality.value is None or many.quality.value is None:
        return ""
    return f"; quality goes from {few.quality.value:.{few.digits}f} to {many.quality.value:.{many.digits}f}"


def _rate(runs: Sequence[Run]) -> float | None:
    """Learning rate after any warm-up: the largest that is known."""
    rates = [epoch.learning_rate for run in runs for epoch in run.epochs if epoch.learning_rate]
    rates += [run.stated["learning_rate"] for run in runs if run.stated.get("learning_rate")]
    return max(rates, default=None)


def _updates(runs: Sequence[Run]) -> int | None:
    return next((run.result.updates for run in runs if run.result.updates), None)
