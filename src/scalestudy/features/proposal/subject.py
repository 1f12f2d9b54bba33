"""What a statement speaks of: the rows of one strategy, and the one that is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.decision import is_undecided
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.quality import Verdict
from scalestudy.analysis.runs import Run
from scalestudy.analysis.scaling.series import nodes_of
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.analysis.table import Row
from scalestudy.features.proposal.attempts import Work
from scalestudy.features.proposal.words import figure
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class Ask:
    """What is asked for, as the user says; None where the study or the panel says it.

    Attributes:
        runs: Different trainings, each repeated with every seed.
        seeds: Repeats of each.
        strategy: Strategy of them.
        workers: Workers of each.
        epochs: Epochs of each.
        charge: Units that an hour costs.
        unit: Name of the unit.
        reserve: Share that is added for what was not foreseen.
        per_node: Workers on a node, where runs did not record their nodes.
    """

    runs: int = 1
    seeds: int | None = None
    strategy: str | None = None
    workers: int | None = None
    epochs: int | None = None
    charge: float | None = None
    unit: str | None = None
    reserve: float = 0.0
    per_node: int | None = None


@dataclass(frozen=True)
class Subject:
    """A study as a panel is told of it.

    Attributes:
        findings: All that was found.
        rows: Those of the strategy that is asked for, with the same other swept values, by workers.
        row: What is asked for.
        ask: The user's own words on it.
        work: What the study's runs took, failed ones included; None where there is no folder of runs.
    """

    findings: Findings
    rows: tuple[Row, ...]
    row: Row
    ask: Ask
    work: Work | None

    @property
    def smallest(self) -> Row:
        """The fewest workers measured: the smallest size that is feasible, as far as the study knows."""
        return self.rows[0]

    @property
    def advised(self) -> bool:
        """Whether the study advises what is asked for."""
        return self.row.key == self.findings.advice.decision.choice

    @property
    def verdict(self) -> Verdict:
        """Quality of what is asked for, as the decision judges it."""
        return (self.findings.advice.decision.verdicts or {}).get(self.row.key, self.row.verdict)

    @property
    def objection(self) -> str:
        """Why the study does not advise it, as a clause; "" where it does."""
        if self.advised:
            return ""
        decision, verdict = self.findings.advice.decision, self.verdict
        price = (decision.prices or {}).get(self.row.key)
        kept = price.efficiency.value if price else None
        if verdict.failed:
            return verdict.sentence
        if verdict.seems_worse:
            return f"its quality is or seems worse, {verdict.sentence}"
        if price is None or kept is None or is_undecided(price, decision.target):
            return "its time could not be compared, or is too uncertain"
        if kept < decision.target:
            return f"its cost efficiency is {figure(kept, 2)}, below {decision.target:g}"
        return f"{decision.choice.label} is faster" if decision.choice else "it advises nothing"

    def of(self, workers: int) -> Row | None:
        """The row with so many workers."""
        return next((row for row in self.rows if row.workers == workers), None)

    def faster(self, row: Row, than: Row) -> Estimate:
        """How many times faster one row trains than another, with its 95 % interval.

        From training times where both processed the same samples, else from their rates.
        """
        measures = self.findings.measures
        if row.key == than.key:
            return Estimate(1.0)
        if row.samples_processed is not None and row.samples_processed == than.samples_processed:
            return measures.training_seconds.ratio(than.key, row.key)
        ours, theirs = (measures.rate.values.get(key) for key in (row.key, than.key))
        return measures.rate.ratio(row.key, than.key) if ours and theirs else NOTHING

    def runs(self, row: Row) -> Sequence[Run]:
        """Finished runs of a row."""
        return self.findings.measures.groups[row.key]

    def recorded_nodes(self, row: Row) -> int | None:
        """Nodes that a row's runs took, as they recorded; None where they differ, or nobody knows."""
        known = {len(run.result.nodes) or nodes_of(run) for run in self.runs(row)}
        return known.pop() if len(known) == 1 else None

    def nodes(self, row: Row) -> int | None:
        """The same, else by `ask.per_node`; None if unknown."""
        found = self.recorded_nodes(row)
        if found is None and self.ask.per_node:
            return -(-row.workers // self.ask.per_node)
        return found


def subject_of(findings: Findings, ask: Ask, work: Work | None) -> Subject | None:
    """What the statement speaks of; None where no run has finished.

    That is what the user names, else what the study advises, else the fastest row with a speed-up, of which
    there is a page but no request.

    Raises:
        UserError: If the user names what was not measured.
    """
    rows = [row for row in findings.rows if not row.oversubscribed] or list(findings.rows)
    if not rows:
        return None
    found = [
        row
        for row in rows
        if ask.strategy in (None, row.strategy) and ask.workers in (None, row.workers)
    ]  # fmt: skip
    if not found:
        measured = ", ".join(row.key.label for row in rows)
        wanted = " on ".join(
            part for part in (ask.strategy, f"{ask.workers} workers" if ask.workers else None) if part
        )
        raise UserError(
            f"--strategy and --workers of a row that was measured: {measured}",
            wanted,
            "Name one of these, or run the study with what is missing.",
        )
    choice = next((row for row in rows if row.key == findings.advice.decision.choice), None)
    if choice is not None and choice in found:
        row = choice
    else:
        alike = [each for each in found if choice and each.strategy == choice.strategy] or found
        row = max(alike, key=lambda each: (each.speed.steady.value is not None, each.throughput.value or 0.0))
    series = [each for each in rows if (each.strategy, each.key.variant) == (row.strategy, row.key.variant)]
    return Subject(findings, tuple(sorted(series, key=lambda each: each.workers)), row, ask, work)
