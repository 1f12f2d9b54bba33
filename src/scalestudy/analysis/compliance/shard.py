"""Validation on a part of the set: as a column says, or as the steps of an accuracy betray.

An accuracy over N samples is a multiple of 1/N. If all values of a run are multiples of the same 1/N, to all
their digits, and that is unlikely to be chance, N is found: of values with a tolerance of e each, another N
fits one by chance with a probability of about 2 e N, and m of them with that to the power m.
"""

from collections.abc import Sequence
from math import sqrt

from scalestudy.analysis.compliance.base import Finding, where
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Run
from scalestudy.analysis.table import Row

SHARES = ("accuracy", "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy")
"""Metrics that count samples."""
MOST = 5000
CHANCE = 1e-3
"""Probability of a chance finding that is accepted."""
SINGLE = 6e-8
"""Relative rounding of single precision, in which frameworks write metrics."""


def shard(findings: Findings) -> list[Finding]:
    """Series that were validated on fewer samples at more workers."""
    series: dict[tuple[str, str], list[tuple[Row, int, bool]]] = {}
    for row in findings.rows:
        runs = findings.measures.groups[row.key]
        stated = runs[0].result.quality_labels if runs[0].foreign else None
        count = stated or _betrayed(runs)
        if count and runs[0].foreign:
            series.setdefault((row.strategy, row.key.variant), []).append((row, count, stated is not None))
    found = []
    for rows in series.values():
        (few, most, _), (many, least, told) = rows[0], min(rows, key=lambda each: each[1])
        if least * 1.05 >= most:
            continue
        runs = [*findings.measures.groups[few.key], *findings.measures.groups[many.key]]
        how = "its column says" if told else "all its values are multiples of 1/N, so it seems"
        value = many.quality.value
        error = None if value is None or not 0 <= value <= 1 else 2 * sqrt(value * (1 - value) / least)
        found.append(
            Finding(
                "wrong" if told else "doubtful",
                "Validation on a shard",
                where(runs),
                f"{many.key.label}: quality is that of {least:,} samples, {how}, and of {most:,} at"
                f" {few.key.label}: it moves in steps of {1 / least:.3g}, and rows are not measured alike.",
                f"quality {value:.{many.digits}f}" if value is not None else "",
                f"{value:.{many.digits}f} ± {error:.2f}" if error is not None else "",
            )
        )
    return found


def _betrayed(runs: Sequence[Run]) -> int | None:
    """Samples that an accuracy was counted on; None where its values do not tell."""
    metric = runs[0].result.metric
    if metric not in SHARES:
        return None
    values = {run.result.quality for run in runs}
    values |= {epoch.validation.get(metric) for run in runs for epoch in run.epochs}
    return granularity(sorted({value for value in values if value is not None and 0 < value < 1}))


def granularity(values: Sequence[float]) -> int | None:
    """The smallest N of which all values are multiples of 1/N, where that is unlikely to be chance."""
    if not values:
        return None
    digits = max(len(f"{value!r}".partition(".")[2]) for value in values)
    tolerance = max(0.5 * 10.0**-digits, SINGLE)
    chance = 0.0
    for count in range(2, MOST + 1):
        chance += min(1.0, 2 * tolerance * count) ** len(values)
        if chance > CHANCE:
            return None
        if all(abs(value * count - round(value * count)) <= tolerance * count for value in values):
            return count
    return None
