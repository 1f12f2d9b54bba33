"""The subject of a proposal: the rows of one strategy, the row that is asked for, and lost worker-hours."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.price import is_undecided
from scalestudy.analysis.quality import Verdict
from scalestudy.analysis.scaling_model import nodes_of
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.analysis.study_table import Row
from scalestudy.launch.launcher import Overview, PointStatus
from scalestudy.report.number_format import significant
from scalestudy.store.records import RankRecord, Result
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.state import UNSUCCESSFUL, RunFiles, state_of_files
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class Work:
    """Worker-hours of a study's runs.

    Attributes:
        useful: Worker-hours of finished runs, from the start of their processes to their results.
        lost: Worker-hours of runs that ended without a result, if their times are known.
        attempts: Number of runs that ended without a result.
        unknown: Number of these runs whose times are unknown; they add nothing to `lost`.
    """

    useful: float
    lost: float
    attempts: int
    unknown: int

    @property
    def share(self) -> float | None:
        """Ratio of lost to useful worker-hours; None if no run finished or a lost time is unknown."""
        return self.lost / self.useful if self.useful and not self.unknown else None


def work_of(folder: StudyFolder, overview: Overview) -> Work:
    """Read the worker-hours of all runs of a study. Runs that are still going on do not count."""
    results = [point.result for point in overview.points if point.result is not None]
    failed = [
        (point.point.workers, seconds_of(run))
        for point in overview.points
        for run in folder.runs(point.name)
        if _came_to_nothing(point, run)
    ]
    return Work(
        useful=sum(result.workers * (result.wall_seconds or 0.0) for result in results) / 3600,
        lost=sum(workers * (seconds or 0.0) for workers, seconds in failed) / 3600,
        attempts=len(failed),
        unknown=sum(seconds is None for _, seconds in failed),
    )


def seconds_of(run: RunFolder) -> float | None:
    """Return how long the processes of a run without a result lived; None if its files do not show it.

    The time is that from the start, recorded by a rank or the launcher, to the last sign of any rank.
    """
    launcher, progress = run.launcher_process(), run.progress()
    starts = [rank.began for rank in run.ranks() if rank.began is not None]
    start = min(starts, default=launcher.written if launcher else None)
    ends = [cause.time for cause in run.causes()] + [sign.written for sign in run.signs()]
    ends += [progress.updated] if progress else []
    return max(ends) - start if start is not None and ends and max(ends) >= start else None


def _came_to_nothing(point: PointStatus, run: RunFolder) -> bool:
    if point.run is not None and run == point.run:
        return point.state in UNSUCCESSFUL
    return state_of_files(RunFiles.of(run), now=time.time()) in UNSUCCESSFUL


FIXED = ("start-up", "framework", "join", "build", "compile", "saving", "proof")
"""Phases of a run that do not grow with its epochs. All other phases are assumed to grow."""


@dataclass(frozen=True)
class RequestOptions:
    """The user's options; None if the study or the panel decides. `reserve` is a share to add."""

    runs: int = 1
    seeds: int | None = None
    strategy: str | None = None
    workers: int | None = None
    epochs: int | None = None
    charge: float | None = None
    unit: str | None = None
    reserve: float = 0.0


@dataclass(frozen=True)
class ProposalSubject:
    """The part of a study that a proposal presents.

    Attributes:
        rows: Rows of the requested strategy and swept values, in ascending order of workers.
        row: The requested row.
        work: Worker-hours of the study's runs, including failed ones.
    """

    findings: Findings
    rows: tuple[Row, ...]
    row: Row
    options: RequestOptions
    work: Work

    @property
    def smallest(self) -> Row:
        """The row with the fewest workers, which is the smallest size known to be feasible."""
        return self.rows[0]

    @property
    def advised(self) -> bool:
        """Whether the study advises the requested row."""
        return self.row.key == self.findings.advice.decision.choice

    @property
    def verdict(self) -> Verdict:
        """The decision's verdict on the quality of the requested row."""
        return (self.findings.advice.decision.verdicts or {}).get(self.row.key, self.row.verdict)

    @property
    def doubt(self) -> str:
        """The study's advice if the requested row is advised provisionally; "" otherwise."""
        advice = self.findings.advice
        return advice.headline if self.advised and advice.decision.provisional else ""

    @property
    def objection(self) -> str:
        """Why the study does not advise the requested row, as a clause; "" if it does."""
        if self.advised:
            return ""
        decision, verdict = self.findings.advice.decision, self.verdict
        price = (decision.prices or {}).get(self.row.key)
        efficiency = price.efficiency.value if price else None
        if verdict.seems_worse or verdict.failed:
            return f"its quality is or seems worse: {verdict.sentence}"
        if price is None or efficiency is None or is_undecided(price, decision.target):
            return "its time cannot be compared, or is too uncertain"
        if efficiency < decision.target:
            return f"its cost efficiency is {significant(efficiency, 2)}, below {decision.target:g}"
        return f"{decision.choice.label} is faster" if decision.choice else "it advises nothing"

    def times_faster(self, row: Row, than: Row) -> Estimate:
        """Return how many times faster one row trains than another, with its 95 % interval.

        Training times are compared if both rows processed equally many samples, else throughputs.
        """
        measures = self.findings.measures
        if row.key == than.key:
            return Estimate(1.0)
        if row.oversubscribed or than.oversubscribed:
            return NOTHING
        if row.samples_processed is not None and row.samples_processed == than.samples_processed:
            return measures.training_seconds.ratio(than.key, row.key)
        known = measures.rate.values.get(row.key) and measures.rate.values.get(than.key)
        return measures.rate.ratio(row.key, than.key) if known else NOTHING

    def runs(self, row: Row) -> list[Result]:
        """Return the results of a row's runs."""
        runs = self.findings.measures.groups[row.key]
        return [run.result for run in runs if isinstance(run.result, Result)]

    def ranks(self, row: Row) -> list[RankRecord]:
        """Return the rank records of a row's runs."""
        return [rank for run in self.findings.measures.groups[row.key] for rank in run.ranks]

    def nodes(self, row: Row) -> int | None:
        """Return the number of nodes of a row's runs; None if it differs or was not recorded."""
        runs = self.findings.measures.groups[row.key]
        counts = {len(run.result.nodes) or nodes_of(run) for run in runs}
        return counts.pop() if len(counts) == 1 else None

    def fixed_seconds(self, row: Row) -> float:
        """Return the seconds of a run that do not grow with its epochs."""
        return sum(self.findings.phases[row.key].get(name, 0.0) for name in FIXED)

    def hours(self, row: Row, epochs: int | None = None) -> float:
        """Return the hours of a row's run from its start to its result, which sites bill.

        With `epochs`, the training has this many epochs. Fixed phases are counted once.
        """
        repeated = sum(self.findings.phases[row.key].values()) - self.fixed_seconds(row)
        more = epochs / self.epochs(row) - 1 if epochs else 0.0
        return ((row.wall_seconds.value or 0.0) + more * repeated) / 3600

    def epochs(self, row: Row) -> int:
        """Return the number of epochs of a row's runs."""
        return self.runs(row)[0].epochs


def subject_of(findings: Findings, options: RequestOptions, work: Work) -> ProposalSubject | None:
    """Return the subject of a proposal; None if no run has finished.

    The row is the one that the user names, else the one that the study advises, else the fastest row with a
    speed-up. In the last case, the page contains no request.

    Raises:
        UserError: If the user names a row that was not measured.
    """
    rows = [row for row in findings.rows if not row.oversubscribed] or list(findings.rows)
    if not rows:
        return None
    strategy, workers = options.strategy, options.workers
    named = [row for row in rows if strategy in (None, row.strategy) and workers in (None, row.workers)]
    if not named:
        measured = ", ".join(row.key.label for row in rows)
        received = " on ".join(filter(None, (strategy, f"{workers} workers" if workers else None)))
        raise UserError(
            f"--strategy and --workers of a measured row: {measured}",
            received,
            "Choose one of these, or run the study with the missing row.",
        )
    named = _in_whole_series(findings, rows, named) if strategy is None else named
    choice = next((row for row in rows if row.key == findings.advice.decision.choice), None)
    if choice is not None and choice in named:
        row = choice
    else:
        alike = [row for row in named if choice and row.strategy == choice.strategy] or named
        row = max(alike, key=lambda row: (row.speed.steady.value is not None, row.throughput.value or 0.0))
    series = [
        other for other in rows if (other.strategy, other.key.variant) == (row.strategy, row.key.variant)
    ]
    return ProposalSubject(findings, tuple(sorted(series, key=lambda row: row.workers)), row, options, work)


def _in_whole_series(findings: Findings, rows: list[Row], named: list[Row]) -> list[Row]:
    """Drop series with a single row left because the others are oversubscribed, if longer series exist."""
    counts = Counter(row.key.series for row in rows)
    cut = {row.key.series for row in findings.rows if row.oversubscribed and counts[row.key.series] == 1}
    whole = [row for row in named if row.key.series not in cut]
    return whole if any(counts[row.key.series] > 1 for row in whole) else named


def listed(names: Sequence[str]) -> str:
    """Join names: `a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 worker`, `4 workers`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
