"""How much faster a training becomes on twice the workers, and up to which count a rule holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from scalestudy.analysis.statistics import Estimate
from scalestudy.features.proposal.columns import Missing
from scalestudy.features.proposal.subject import ProposalSubject, counted, listed
from scalestudy.report.document import Block, Heading, Paragraph, Table
from scalestudy.report.format import number, with_interval


@dataclass(frozen=True)
class Doubling:
    """A doubling that was measured: how many times faster `2 * start` workers train than `start`."""

    start: int
    factor: Estimate

    @property
    def end(self) -> int:
        """Twice the workers."""
        return 2 * self.start

    def __str__(self) -> str:
        return f"{self.start} → {self.end}"

    def holds(self, least: float) -> bool:
        """Whether it is as fast as asked for, on average."""
        return (self.factor.value or 0.0) >= least

    def is_certain(self, least: float) -> bool:
        """Whether the interval lies above (or below) what is asked for."""
        low, high = self.factor.low, self.factor.high
        return low is not None and high is not None and (low >= least or high < least)


def doublings(subject: ProposalSubject) -> list[Doubling]:
    """Every pair of n and 2n workers that was measured, by n."""
    rows = {row.workers: row for row in subject.rows}
    pairs = [(row, rows[2 * row.workers]) for row in subject.rows if 2 * row.workers in rows]
    measured = [Doubling(row.workers, subject.times_faster(double, row)) for row, double in pairs]
    return [doubling for doubling in measured if doubling.factor.value is not None]


def doubling_blocks(subject: ProposalSubject, least: float) -> tuple[Block, ...] | Missing:
    """A sentence on up to which count the rule holds, and every doubling; or what is missing to judge it."""
    measured = doublings(subject)
    if not measured:
        why = "no number of workers and its double were both measured"
        return Missing(why, "Double from count to count, as `workers = [1, 2, 4]` under [sweep].")
    headings = (
        Heading("Workers", numeric=False), Heading("Times faster"),
        Heading(f"At least {number(least, 1)}", numeric=False),
    )  # fmt: skip
    rows = tuple(
        (
            str(doubling),
            with_interval(doubling.factor, 2),
            ("yes" if doubling.holds(least) else "no")
            + ("" if doubling.is_certain(least) else ", not certain"),
        )
        for doubling in measured
    )
    table = Table(headings, rows, "Each doubling on the same input.", name="doublings")
    return Paragraph(doubling_verdict(measured, least, subject.row.workers)), table


def doubling_verdict(measured: Sequence[Doubling], least: float, workers: int) -> str:
    """Up to which count every measured doubling is fast enough, and how sure that is.

    Args:
        measured: At least one doubling, by its start.
        least: How many times faster each has to be.
        workers: What is requested.
    """
    enough = list(takewhile(lambda doubling: doubling.holds(least), measured))
    if not enough:
        first = measured[0]
        return (
            f"Already {first.end} workers train only {number(first.factor.value, 2)} times faster than"
            f" {first.start}, less than the {least:g} asked for."
        )
    reached = enough[-1].end
    text = (
        f"Each doubling of the workers makes the training at least {least:g} times faster up to"
        f" {counted(reached, 'worker')}"
    )
    rest = measured[len(enough) :]
    text += f"; the next, to {rest[0].end}, does not." if rest else "."
    unsure = [doubling for doubling in enough if not doubling.is_certain(least)]
    if unsure:
        once = any(doubling.factor.low is None for doubling in unsure)
        why = "what was run once has no interval" if once else "the 95 % intervals reach below"
        text += f" This is not certain for {listed(list(map(str, unsure)))}: {why}."
    if workers > reached and all(doubling.end != workers for doubling in measured):
        text += f" Half of {counted(workers, 'worker')} was not measured, so nothing is said of that count."
    return text
