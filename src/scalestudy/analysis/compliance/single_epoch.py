"""Speed-up that rests on one epoch, and stated speed-ups that do."""

from collections.abc import Sequence

from scalestudy.analysis.compliance.base import Finding, mean_of, where
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Run

SAME = 0.005
"""Share by which two speed-ups may differ and still be the same."""


def single_epoch(findings: Findings) -> list[Finding]:
    """Rows whose time is that of a single epoch."""
    found = []
    groups = findings.measures.groups
    for row in findings.rows:
        runs, baseline = groups[row.key], row.speed.baseline
        if row.basis != "epoch" or baseline is None or row.speed.steady.value is None or baseline == row.key:
            continue
        timed = min(len([e for e in run.epochs[1:] if e.train_seconds]) for run in [*runs, *groups[baseline]])
        if timed == 1:
            found.append(
                Finding(
                    "doubtful",
                    "Speed-up from a single epoch",
                    where(runs),
                    f"{row.key.label}: only the second epoch is timed, so chance cannot be told from gain.",
                )
            )
        second, stated = _second(groups[baseline], runs), runs[0].stated.get("speedup")
        steady = row.speed.steady.value
        close = stated is not None and second is not None and abs(stated / second - 1) < SAME
        if close and abs(steady / (stated or 1) - 1) > SAME:
            found.append(
                Finding(
                    "wrong",
                    "Speed-up from a single epoch",
                    where(runs),
                    f"{row.key.label}: the speed-up stated is that of the second epoch alone.",
                    f"speed-up {stated:.2f}",
                    f"{steady:.2f}",
                )
            )
    return found


def _second(baseline: Sequence[Run], runs: Sequence[Run]) -> float | None:
    """Speed-up by the second epochs alone."""
    one, many = _time(baseline), _time(runs)
    return one / many if one and many else None


def _time(runs: Sequence[Run]) -> float | None:
    return mean_of([run.epochs[1].train_seconds if len(run.epochs) > 1 else None for run in runs])
