"""The section on a sweep over cores per worker: the number of cores that trained fastest."""

import json
from collections.abc import Mapping, Sequence

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.analysis.table import Row
from scalestudy.report.document import Heading, Paragraph, Section, Table
from scalestudy.report.format import decimals, number, time_unit
from scalestudy.report.results import identity_headings
from scalestudy.report.series import series_name
from scalestudy.study.strategies import is_synchronous, is_timed

NAME = "launch.cpus_per_worker"
ABOUT = (
    "Cores read and prepare the samples of a worker. With too few, it waits for input; beyond some number,"
    " more cores gain nothing. The table of results has every number of cores."
)


Sweeps = Mapping[Key, Sequence[tuple[int, Row]]]
"""Rows by their key without cores: cores per worker, and the row; all rows have a training time."""


def core_sweeps(rows: Sequence[Row]) -> Sweeps:
    """Sweeps with at least two numbers of cores, in reading order.

    Virtual and asynchronous workers and oversubscribed points are left out: their times cannot be compared.
    """
    sweeps: dict[Key, list[tuple[int, Row]]] = {}
    for row in rows:
        cores = row.key.swept.get(NAME)
        timed = is_timed(row.implementation) and not row.oversubscribed and is_synchronous(row.implementation)
        if isinstance(cores, int) and row.training_seconds.value and timed:
            swept = {name: value for name, value in row.key.swept.items() if name != NAME}
            key = Key(row.strategy, row.workers, json.dumps(swept, sort_keys=True, default=str))
            sweeps.setdefault(key, []).append((cores, row))
    return {key: tried for key, tried in sweeps.items() if len({cores for cores, _ in tried}) > 1}


def best_cores(sweeps: Sweeps) -> dict[Key, tuple[int, Row]]:
    """Number of cores of the shortest training, and its row; the fewer cores if two are equal."""
    return {key: min(tried, key=lambda row: (_seconds(row[1]), row[0])) for key, tried in sweeps.items()}


def best_speedups(best: Mapping[Key, tuple[int, Row]]) -> list[float | None]:
    """Speed-up over one worker, each with its best cores; None without one worker or if the work differs."""
    speedups = []
    for key, (_, row) in best.items():
        one = best.get(Key(key.strategy, 1, key.variant), (0, None))[1]
        alike = one is not None and one.samples_processed == row.samples_processed
        speedups.append(_seconds(one) / _seconds(row) if one is not None and alike else None)
    return speedups


def _seconds(row: Row) -> float:
    return row.training_seconds.value or 0.0


def cores_section(findings: Findings) -> Section | None:
    """Time, speed-up and efficiency with the best cores for each number of workers; None without a sweep."""
    best = best_cores(core_sweeps(findings.rows))
    if not best:
        return None
    unit, length = time_unit([_seconds(row) for _, row in best.values()])
    headings = (
        *identity_headings([]), Heading("Cores", "per worker", "cores"),
        Heading("Training time", unit, f"time {unit}"), Heading("Speed-up", "training time", "S"),
        Heading("Efficiency", "training time", "E"),
    )  # fmt: skip
    digits = decimals([_seconds(row) / length for _, row in best.values()])
    lines = []
    for (key, (cores, row)), speedup in zip(best.items(), best_speedups(best), strict=True):
        ratios = ("", "") if speedup is None else (number(speedup, 2), number(speedup / row.workers, 2))
        time = number(_seconds(row) / length, digits)
        lines.append((series_name(key), str(row.workers), str(cores), time, *ratios))
    note = "Each number of workers, one included, with the number of cores that trained fastest."
    table = Table(headings, tuple(lines), "The best over cores", (note,), "best-over-cores")
    return Section("Cores per worker", (Paragraph(ABOUT), table), "cores")
