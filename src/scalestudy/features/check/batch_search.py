"""The largest batch that fits: doubling until one does not, then halving what is left between. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """One batch size.

    Attributes:
        batch: Samples.
        fits: Whether it does.
        peak: Bytes that it took, or would take; None where that is not known.
        why: Why it does not fit.
        tried: Whether it was computed; else it is foreseen from others that it cannot fit.
    """

    batch: int
    fits: bool
    peak: float | None = None
    why: str = ""
    tried: bool = True


@dataclass(frozen=True)
class Search:
    """What was found.

    Attributes:
        largest: Samples; 0 if not even one fits.
        trials: In the order in which they were made.
    """

    largest: int
    trials: tuple[Trial, ...]


def search(
    attempt: Callable[[int], Trial],
    *,
    start: int,
    most: int,
    budget: float | None = None,
    tell: Callable[[Trial], None] = lambda trial: None,
) -> Search:
    """Find it.

    Args:
        attempt: Tries a batch size.
        start: First batch size.
        most: Beyond which nobody asks: the training set.
        budget: Bytes that may be taken. What is foreseen to take more is not tried; None where trying too
            much does no harm.
        tell: Is told of each trial.
    """
    trials: list[Trial] = []

    def fits(batch: int) -> bool:
        needed = foreseen(trials, batch)
        over = budget is not None and needed is not None and needed > budget
        trial = (
            Trial(batch, False, needed, "it would take more memory", tried=False) if over else attempt(batch)
        )
        trials.append(trial)
        tell(trial)
        return trial.fits

    good, bad, batch = 0, most + 1, min(start, most)
    while good < most and bad > most:
        if fits(batch):
            good, batch = batch, min(2 * batch, most)
        else:
            bad = batch
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return Search(good, tuple(trials))


def foreseen(trials: Sequence[Trial], batch: int) -> float | None:
    """Bytes of a batch, on the line through the two largest that fit; None without two, or if it falls."""
    known = sorted((each.batch, each.peak) for each in trials if each.fits and each.peak is not None)
    if len(known) < 2:
        return None
    (one, low), (two, high) = known[-2:]
    return high + (high - low) / (two - one) * (batch - two) if high > low else None
