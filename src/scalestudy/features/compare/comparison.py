"""Several studies side by side: all that a comparison says, computed once."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.runs import Key
from scalestudy.features.compare.ranking import Ranking, rankings, sentences
from scalestudy.features.compare.rows import Compared, compared
from scalestudy.features.compare.side import Side, differences, unlike_tasks, unpaired_because
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class Comparison:
    """Studies held against the first of them.

    Attributes:
        sides: The studies; the first is the reference.
        asked: Keys that were asked for differently, with each side's value.
        rows: Every quantity of every shared row.
        alone: Rows of each side that no other side has.
        rankings: Of each side, by variant and count.
        sentences: What rankings say for certain.
        unpaired: Of each other side, why its qualities are not paired by seed; None where they are.
    """

    sides: tuple[Side, ...]
    asked: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[Compared, ...]
    alone: tuple[tuple[Key, ...], ...]
    rankings: tuple[dict[tuple[str, int], Ranking], ...]
    sentences: tuple[str, ...]
    unpaired: tuple[str | None, ...]


def compare(sides: Sequence[Side]) -> Comparison:
    """Hold studies against the first of them.

    Raises:
        UserError: They train different things, so that nothing can be compared; there are not two, or two of
            one name.
    """
    held = tuple(sides)
    names = [side.name for side in held]
    if len(held) < 2:
        raise UserError("two studies or more", str(len(held)), "Name another results folder.")
    if len(set(names)) < len(names):
        raise UserError(
            "studies of different names", ", ".join(names), "Name them yourself: before=DIR after=DIR."
        )
    tasks = unlike_tasks(held)
    if tasks:
        raise UserError(
            "studies of one task",
            ", ".join(tasks),
            "Compare studies that train the same model on the same data.",
        )
    rows = tuple(compared(held))
    others = [row for row in rows if row.why_not.startswith("parameters of the model")]
    if rows and len(others) == len(rows):
        raise UserError(
            "studies of one model", f"other {others[0].why_not}", "Compare studies that train the same model."
        )
    groups = [list(side.findings.measures.groups) for side in held]
    return Comparison(
        sides=held,
        asked=tuple(differences(held)),
        rows=rows,
        alone=tuple(
            tuple(key for key in keys if sum(key in other for other in groups) == 1) for keys in groups
        ),
        rankings=tuple(rankings(side) for side in held),
        sentences=tuple(sentences(held)),
        unpaired=tuple(unpaired_because(held[0], side) for side in held[1:]),
    )


def slower(comparison: Comparison, share: float) -> list[Compared]:
    """Rows that are slower than on the reference by more than a share, for certain.

    By the interval of the ratio of throughputs, all of which lies below 1 - share; of single runs, which have
    none, by the ratio itself. Of rows whose throughput is not known, by training times.

    Raises:
        UserError: There is no row whose speed can be compared, so that nothing would ever fail.
    """
    found = []
    if not any(row.change.value is not None for row in comparison.rows if row.quantity != "quality"):
        why = dict.fromkeys(row.why_not for row in comparison.rows if row.quantity != "quality")
        raise UserError(
            "a row whose speed can be compared",
            "; ".join(why) or "studies that share no row",
            "Run both studies where nothing else computes, with the same strategies and workers.",
        )
    timed = {(row.key, row.other) for row in comparison.rows if row.quantity == "rate" and not row.why_not}
    for row in comparison.rows:
        if row.why_not or row.quantity == "quality" or row.change.value is None:
            continue
        if row.quantity == "rate":
            most = row.change.high if row.change.high is not None else row.change.value
            if most < 1 - share:
                found.append(row)
        elif (row.key, row.other) not in timed:
            least = row.change.low if row.change.low is not None else row.change.value
            if least > 1 / (1 - share):
                found.append(row)
    return found
