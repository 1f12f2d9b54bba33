"""The section on a sweep over cores per worker: rows that differ in nothing else, and the best of each."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key, describe
from scalestudy.analysis.table import Row
from scalestudy.report.document import Heading, Paragraph, Section, Table
from scalestudy.report.format import decimals, number, time_unit
from scalestudy.report.results import identity_headings
from scalestudy.study.strategies import is_timed

NAME = "launch.cpus_per_worker"
ABOUT = (
    "Cores read and prepare what a worker computes: with too few it waits for input, and beyond some"
    " number more of them gain nothing. The table of results has every number of cores."
)


@dataclass(frozen=True)
class CoreSweep:
    """One strategy on one number of workers, with several numbers of cores.

    Attributes:
        key: Without the cores.
        rows: By cores per worker; all with a training time.
    """

    key: Key
    rows: tuple[tuple[int, Row], ...]

    @property
    def best(self) -> tuple[int, Row]:
        """Cores of the shortest training, and its row; the fewer cores of two alike."""
        return min(self.rows, key=lambda row: _seconds(row[1]))

    @property
    def label(self) -> str:
        """Strategy, with the other swept values where there are any."""
        return self.key.strategy + (f" ({describe(self.key.swept)})" if self.key.swept else "")


def core_sweeps(rows: Sequence[Row]) -> list[CoreSweep]:
    """What was swept over cores, in reading order; only where there are two numbers of them at least.

    Times of virtual workers, and of oversubscribed points, say nothing about cores: they are left out.
    """
    found: dict[Key, list[tuple[int, Row]]] = {}
    for row in rows:
        cores = row.key.swept.get(NAME)
        timed = is_timed(row.implementation) and not row.oversubscribed
        if isinstance(cores, int) and row.training_seconds.value and timed:
            swept = {name: value for name, value in row.key.swept.items() if name != NAME}
            key = Key(row.strategy, row.workers, json.dumps(swept, sort_keys=True, default=str))
            found.setdefault(key, []).append((cores, row))
    return [
        CoreSweep(key, tuple(sorted(members, key=lambda member: member[0])))
        for key, members in found.items()
        if len({cores for cores, _ in members}) > 1
    ]


def best_speedups(sweeps: Sequence[CoreSweep]) -> list[float | None]:
    """Speed-up of the best over cores, against one worker's best; None without it, or of other work."""
    singles = {(s.key.strategy, s.key.variant): s.best[1] for s in sweeps if s.key.workers == 1}
    speedups = []
    for sweep in sweeps:
        row, one = sweep.best[1], singles.get((sweep.key.strategy, sweep.key.variant))
        alike = one is not None and one.samples_processed == row.samples_processed
        speedups.append(_seconds(one) / _seconds(row) if one is not None and alike else None)
    return speedups


def _seconds(row: Row) -> float:
    return row.training_seconds.value or 0.0


def cores_section(findings: Findings) -> Section | None:
    """The best number of cores per worker; None where fewer than two numbers were tried."""
    sweeps = core_sweeps(findings.rows)
    if not sweeps:
        return None
    return Section("Cores per worker", (Paragraph(ABOUT), _best_table(sweeps)), "cores")


def _best_table(sweeps: Sequence[CoreSweep]) -> Table:
    """The best over cores: T, S and E as a study of workers alone would have them."""
    unit, length = time_unit([_seconds(row) for sweep in sweeps for _, row in sweep.rows])
    headings = (
        *identity_headings([]), Heading("Cores", "a worker", "cores"),
        Heading("Training time", unit, f"time {unit}"), Heading("Speed-up", "training time", "S"),
        Heading("Efficiency", "training time", "E"),
    )  # fmt: skip
    digits = decimals([_seconds(sweep.best[1]) / length for sweep in sweeps])
    lines = []
    for sweep, speedup in zip(sweeps, best_speedups(sweeps), strict=True):
        cores, row = sweep.best
        ratios = () if speedup is None else (speedup, speedup / row.workers)
        lines.append((
            sweep.label, str(row.workers), str(cores), number(_seconds(row) / length, digits),
            *([number(ratio, 2) for ratio in ratios] or ("", "")),
        ))  # fmt: skip
    note = "Each number of workers has the cores that it trained fastest with, one worker too."
    return Table(headings, tuple(lines), "The best over cores", (note,), "best-over-cores")
