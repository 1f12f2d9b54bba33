"""The length of training from which the decision is another one.

Start-up and compilation weigh more in a short training, so few workers may be right for it and many for a
long one. A study without a plan says from which length on its answer changes, if intervals support that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log10

from scalestudy.analysis.decision import TIME_REASONS, Decision
from scalestudy.analysis.planned_training import PlannedTraining
from scalestudy.analysis.runs import Key

LONGEST = 1_000_000
"""Epochs of a training in which the fixed part no longer counts."""


@dataclass(frozen=True)
class Switch:
    """From `epochs` on, which take `seconds`, the decision is `choice`."""

    choice: Key
    epochs: int
    seconds: float


def switching_length(
    decision: Decision,
    epochs: int,
    decide: Callable[[PlannedTraining], Decision],
) -> Switch | None:
    """Return from which length on the decision changes; None if it does not, or if this is not certain.

    Args:
        decision: The decision for the trainings of the study.
        epochs: Their epochs.
        decide: Makes the decision for a planned training.
    """
    # If the answer of very long trainings is the same, there is no length to be searched for.
    long = decide(PlannedTraining(LONGEST))
    if long.choice is None or long.choice == decision.choice:
        return None
    if not _times_are_settled(long):
        return None

    def is_certain(length: int) -> bool:
        found = decide(PlannedTraining(length))
        return found.choice == long.choice and _times_are_settled(found)

    # Bisection on the ratio of lengths, to 2 %: the length is reported with two digits.
    too_short, enough = epochs, LONGEST
    while enough > too_short + 1 and enough > 1.02 * too_short:
        middle = ceil((too_short * enough) ** 0.5)
        if is_certain(middle):
            enough = middle
        else:
            too_short = middle
    length = _round_up(enough)
    # Rounding up may reach a length at which a third row is chosen.
    price = decide(PlannedTraining(length)).price
    if price is None or price.key != long.choice:
        return None
    return Switch(long.choice, length, price.duration)


def _times_are_settled(decision: Decision) -> bool:
    return set(TIME_REASONS).isdisjoint(decision.provisional)


def _round_up(epochs: int) -> int:
    """Round up to two significant digits."""
    unit = 10 ** max(0, floor(log10(epochs)) - 1)
    return int(ceil(epochs / unit) * unit)
