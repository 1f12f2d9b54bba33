"""What a proposal is about: the rows of one strategy, and the row whose resources are requested."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.decision import is_undecided
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.quality import Verdict
from scalestudy.analysis.scaling.series import nodes_of
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.analysis.table import Row
from scalestudy.features.proposal.attempts import Work
from scalestudy.report.format import significant
from scalestudy.study.records import RankRecord, Result
from scalestudy.util.errors import UserError

FIXED = ("start-up", "framework", "join", "build", "compile", "saving", "proof")
"""Phases of a run that do not grow with its epochs. All others are taken to, also those without a name."""


@dataclass(frozen=True)
class RequestOptions:
    """What the user asks for; None where the study or the panel decides. `reserve` is a share to add."""

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
    """A study as a panel sees it.

    Attributes:
        findings: The whole study.
        rows: Those of the strategy that is requested, with the same other swept values, by workers.
        row: The row that is requested.
        options: What the user asks for.
        work: What the study's runs took, failed ones included.
    """

    findings: Findings
    rows: tuple[Row, ...]
    row: Row
    options: RequestOptions
    work: Work

    @property
    def smallest(self) -> Row:
        """The fewest workers measured: the smallest feasible size, as far as the study knows."""
        return self.rows[0]

    @property
    def advised(self) -> bool:
        """Whether the study advises the row that is requested."""
        return self.row.key == self.findings.advice.decision.choice

    @property
    def verdict(self) -> Verdict:
        """Quality of that row, as the decision judges it."""
        return (self.findings.advice.decision.verdicts or {}).get(self.row.key, self.row.verdict)

    @property
    def objection(self) -> str:
        """Why the study does not advise it, as a clause; "" where it does."""
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
        """How many times faster one row trains than another, with its 95 % interval.

        From training times where both processed the same samples, else from their throughput.
        """
        measures = self.findings.measures
        if row.key == than.key:
            return Estimate(1.0)
        if row.samples_processed is not None and row.samples_processed == than.samples_processed:
            return measures.training_seconds.ratio(than.key, row.key)
        known = measures.rate.values.get(row.key) and measures.rate.values.get(than.key)
        return measures.rate.ratio(row.key, than.key) if known else NOTHING

    def runs(self, row: Row) -> list[Result]:
        """Results of a row's runs."""
        runs = self.findings.measures.groups[row.key]
        return [run.result for run in runs if isinstance(run.result, Result)]

    def ranks(self, row: Row) -> list[RankRecord]:
        """Environments that a row's runs recorded."""
        return [rank for run in self.findings.measures.groups[row.key] for rank in run.ranks]

    def nodes(self, row: Row) -> int | None:
        """Nodes that a row's runs took; None where they differ, or were not recorded."""
        runs = self.findings.measures.groups[row.key]
        counts = {len(run.result.nodes) or nodes_of(run) for run in runs}
        return counts.pop() if len(counts) == 1 else None

    def fixed_seconds(self, row: Row) -> float:
        """Seconds of a run that do not grow with its epochs."""
        return sum(self.findings.phases[row.key].get(name, 0.0) for name in FIXED)

    def hours(self, row: Row, epochs: int | None = None) -> float:
        """Hours of one of a row's runs from its start to its result, which is what sites bill.

        With `epochs`, of a training of so many: what does not repeat in each is counted once.
        """
        repeated = sum(self.findings.phases[row.key].values()) - self.fixed_seconds(row)
        more = epochs / self.epochs(row) - 1 if epochs else 0.0
        return ((row.wall_seconds.value or 0.0) + more * repeated) / 3600

    def epochs(self, row: Row) -> int:
        """Epochs of a row's runs."""
        return self.runs(row)[0].epochs


def subject_of(findings: Findings, options: RequestOptions, work: Work) -> ProposalSubject | None:
    """What a proposal is about; None where no run has finished.

    That is what the user names, else what the study advises, else the fastest row with a speed-up, of which
    there is a page but no request.

    Raises:
        UserError: If the user names what was not measured.
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
    """Without rows of which a single count is left, as the others' times do not count, if some have more."""
    counts = Counter(row.key.series for row in rows)
    cut = {row.key.series for row in findings.rows if row.oversubscribed and counts[row.key.series] == 1}
    whole = [row for row in named if row.key.series not in cut]
    return whole if any(counts[row.key.series] > 1 for row in whole) else named


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(count: int, noun: str) -> str:
    """`1 worker`, `4 workers`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
