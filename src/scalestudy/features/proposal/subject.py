"""The subject of a proposal: the rows of one strategy, and what its runs recorded."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.planned_training import PlannedTraining, time_parts
from scalestudy.analysis.price import is_undecided
from scalestudy.analysis.quality import Verdict
from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling_model import nodes_of
from scalestudy.analysis.study_table import Row
from scalestudy.analysis.wording.doubts import describe_doubt
from scalestudy.analysis.wording.verdicts import describe_verdict
from scalestudy.report.number_format import significant
from scalestudy.store.records import RankRecord, Result
from scalestudy.util.errors import UserError
from scalestudy.util.text import count_noun


@dataclass(frozen=True)
class RequestOptions:
    """The user's options; None if the study or the panel decides. `reserve` is a share to add."""

    runs: int = 1
    seeds: int | None = None
    strategy: str | None = None
    workers: int | None = None
    charge: float | None = None
    unit: str | None = None
    reserve: float = 0.0


@dataclass(frozen=True)
class ProposalSubject:
    """The part of a study that a proposal presents.

    Attributes:
        rows: Rows of the requested strategy and swept values, in ascending order of workers.
        row: The requested row.
    """

    findings: Findings
    rows: tuple[Row, ...]
    row: Row
    options: RequestOptions

    @property
    def advised(self) -> bool:
        """Whether the study advises the requested row."""
        return self.row.key == self.findings.advice.decision.choice

    @property
    def verdict(self) -> Verdict:
        """The decision's verdict on the quality of the requested row."""
        verdicts = self.findings.advice.decision.verdicts or {}
        return verdicts.get(self.row.key, self.row.verdict)

    @property
    def doubt(self) -> str:
        """The study's advice if the requested row is advised provisionally; "" otherwise."""
        advice = self.findings.advice
        if not self.advised or not advice.decision.provisional:
            return ""
        return " ".join((advice.headline, *map(describe_doubt, advice.decision.doubts)))

    @property
    def objection(self) -> str:
        """Why the study does not advise the requested row, as a clause; "" if it does."""
        if self.advised:
            return ""
        decision = self.findings.advice.decision
        verdict = self.verdict
        # Quality goes before time: no speed makes up for it.
        if verdict.seems_worse or verdict.failed:
            return f"its quality is or seems worse: {describe_verdict(verdict)}"
        prices = decision.prices or {}
        price = prices.get(self.row.key)
        efficiency = None
        if price:
            efficiency = price.efficiency.value
        if price is None or efficiency is None or is_undecided(price, decision.target):
            return "its time cannot be compared, or is too uncertain"
        if efficiency < decision.target:
            return f"its cost efficiency is {significant(efficiency, 2)}, below {decision.target:g}"
        if decision.choice:
            return f"{decision.choice.label} is faster"
        return "it advises nothing"

    @property
    def planned(self) -> PlannedTraining:
        """The training that is requested."""
        return self.findings.criteria.planned

    def runs(self, row: Row) -> list[Result]:
        """Return the results of a row's runs."""
        runs = self.findings.measures.groups[row.key]
        return [run.result for run in runs if isinstance(run.result, Result)]

    def ranks(self, row: Row) -> list[RankRecord]:
        """Return the rank records of a row's runs."""
        found: list[RankRecord] = []
        for run in self.findings.measures.groups[row.key]:
            found += run.ranks
        return found

    def nodes(self, row: Row) -> int | None:
        """Return the number of nodes of a row's runs; None if it differs or was not recorded."""
        counts = set()
        for run in self.findings.measures.groups[row.key]:
            counts.add(len(run.result.nodes) or nodes_of(run))
        if len(counts) != 1:
            return None
        return counts.pop()

    def fixed_seconds(self, row: Row) -> float:
        """Return the seconds of a run that do not grow with its epochs."""
        fixed = []
        for run in self.findings.measures.groups[row.key]:
            part = time_parts(run)
            if part is not None:
                fixed.append(part.fixed)
        if not fixed:
            return 0.0
        return sum(fixed) / len(fixed)

    def hours(self, row: Row) -> float:
        """Return the hours of the planned training from its start to its result, which sites bill."""
        planned = self.findings.measures.planned_seconds
        if planned.values.get(row.key):
            seconds = planned.mean(row.key).value
        else:
            seconds = row.wall_seconds.value
        return (seconds or 0.0) / 3600

    def epochs(self, row: Row) -> int:
        """Return the number of epochs of a row's runs."""
        return self.runs(row)[0].epochs


def subject_of(findings: Findings, options: RequestOptions) -> ProposalSubject | None:
    """Return the subject of a proposal; None without a row whose workers had cores or GPUs of their own.

    The row is the one that the user names, else the one that the study advises, else the fastest row with a
    speed-up. In the last case, the page contains no request.

    Raises:
        UserError: If the user names a row that was not measured.
    """
    # Times of workers that shared their cores say nothing of production runs.
    rows = [row for row in findings.rows if not row.oversubscribed]
    if not rows:
        return None
    strategy = options.strategy
    workers = options.workers
    named = []
    for row in rows:
        if strategy in (None, row.strategy) and workers in (None, row.workers):
            named.append(row)
    if not named:
        measured = ", ".join(row.key.label for row in rows)
        received = []
        if strategy:
            received.append(strategy)
        if workers:
            received.append(f"{workers} workers")
        raise UserError(
            f"--strategy and --workers of a measured row: {measured}",
            " on ".join(received),
            "Choose one of these, or run the study with the missing row.",
        )
    requested = _requested_row(named, rows, findings.advice.decision.choice)
    wanted = (requested.strategy, requested.key.variant)
    series = []
    for row in rows:
        if (row.strategy, row.key.variant) == wanted:
            series.append(row)
    series.sort(key=lambda row: row.workers)
    return ProposalSubject(findings, tuple(series), requested, options)


def _requested_row(named: list[Row], rows: Sequence[Row], choice: Key | None) -> Row:
    """Return the advised row if it is named, else the fastest of those named, of the advised strategy if any is."""
    for row in named:
        if row.key == choice:
            return row
    advised = {row.strategy for row in rows if row.key == choice}
    # Where only workers are named, of the strategy that the study advises.
    alike = [row for row in named if row.strategy in advised]

    def speed(row: Row) -> tuple[bool, float]:
        has_speedup = row.speed.steady.value is not None
        return has_speedup, row.throughput.value or 0.0

    return max(alike or named, key=speed)


def count_runs(rows: Sequence[Row]) -> str:
    """Return the runs of rows, trainings and timing runs apart: `1 training and 2 timing runs`."""
    trainings = 0
    timings = 0
    for row in rows:
        trainings += row.trainings
        timings += row.timings
    if not timings:
        return count_noun(trainings, "run")
    of_timings = count_noun(timings, "timing run")
    if trainings:
        return f"{count_noun(trainings, 'training')} and {of_timings}"
    return of_timings
