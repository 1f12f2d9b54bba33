"""The rule that a training becomes so much faster on twice the workers, as parts of a page."""

from collections.abc import Sequence

from scalestudy.features.proposal.doublings import Doubling, holds_to
from scalestudy.features.proposal.remedy import Remedy
from scalestudy.features.proposal.subject import Subject
from scalestudy.features.proposal.words import Missing, counted, listed
from scalestudy.report.document import Block, Heading, Paragraph, Table
from scalestudy.report.format import number, with_interval


def doubling_blocks(found: Sequence[Doubling], least: float, subject: Subject) -> tuple[Block, ...] | Missing:
    """A sentence on up to which count the rule holds, and every doubling; or what is missing to judge it."""
    rows = tuple(
        (f"{each.start} → {each.end}", with_interval(each.factor, 2), _answer(each, least)) for each in found
    )
    workers = subject.row.workers
    if not rows:
        return Missing(
            "no number of workers and its double were both measured", Remedy(workers=_chain(workers))
        )
    headings = (
        Heading("Workers", numeric=False), Heading("Times faster"),
        Heading(f"At least {number(least, 1)}", numeric=False),
    )  # fmt: skip
    table = Table(headings, rows, "Each doubling on the same input.", name="doublings")
    return Paragraph(verdict(found, least, subject)), table


def verdict(found: Sequence[Doubling], least: float, subject: Subject) -> str:
    """Up to which count every measured doubling is fast enough, and how sure that is."""
    reached, workers = holds_to(list(found), least), subject.row.workers
    failed = [each for each in found if not each.holds(least)]
    if reached is None:
        first = min(found, key=lambda each: each.end)
        factor = number(first.factor.value, 2)
        return (
            f"Already {first.end} workers train only {factor} times faster than {first.start}, less than the"
            f" {least:g} asked for."
        )
    told = (
        f"Each doubling of the workers makes the training at least {least:g} times faster up to"
        f" {counted(reached, 'worker')}"
    )
    told += f"; the next, to {min(each.end for each in failed)}, does not." if failed else "."
    unsure = [each for each in found if each.end <= reached and not each.is_certain(least)]
    if unsure:
        told += f" This is not certain for {listed([f'{each.start} → {each.end}' for each in unsure])}: "
        once = any(each.factor.low is None for each in unsure)
        told += "what was run once has no interval." if once else "the 95 % intervals reach below."
    if workers > reached and not any(each.end == workers for each in found):
        told += f" Half of {counted(workers, 'worker')} was not measured, so nothing is said of that count."
    return told


def _answer(each: Doubling, least: float) -> str:
    told = "yes" if each.holds(least) else "no"
    return told if each.is_certain(least) else f"{told}, not certain"


def _chain(workers: int) -> tuple[int, ...]:
    """Counts from 1 by doubling, up to the one asked for and two at least."""
    counts = [1]
    while counts[-1] < max(2, workers):
        counts.append(2 * counts[-1])
    return tuple(counts)
