"""The law that times follow: chosen by how well each foretells a count that it was not fitted to.

Leave-one-count-out cross-validation (Stone, "Cross-validatory choice and assessment of statistical
predictions", J. Royal Statistical Society B 36, 1974): each count is left out with all of its runs, the law
is fitted to the others, and foretells it. A law with more terms is taken only where its error is less than
`GAIN` of the simpler one's: in studies made by Amdahl's law with noise of 1 and 5 %, 5 and 8 counts and 1 and
3 runs each, that took communication for one in 3 to 8 %. Below `FOR_MORE` counts nothing beyond two terms is
tried, since the rest would be too few to tell, and Extra-P asks for as many.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.scaling.amdahl import AMDAHL, MINIMUM_COUNTS
from scalestudy.analysis.scaling.communication import COMMUNICATION
from scalestudy.analysis.scaling.fit import Fit, fit, relative
from scalestudy.analysis.scaling.gustafson import GUSTAFSON
from scalestudy.analysis.scaling.law import Law
from scalestudy.analysis.scaling.series import Work

FOR_MORE = 5
"""Different counts from which laws of more than two terms are tried."""
GAIN = 0.8
"""Share of the simpler law's error that a law with more terms must come below."""
ROUNDING = 1e-6
"""Relative errors below this are rounding."""
CANDIDATES: dict[Work, tuple[Law, ...]] = {"strong": (AMDAHL, COMMUNICATION), "weak": (GUSTAFSON,)}
"""Laws for work that is shared out, and for work that grows with the workers; the simplest first."""


@dataclass(frozen=True)
class Trial:
    """A law that was tried: how far off it foretold counts it had not seen, as a share of their time."""

    law: Law
    error: float
    """Root mean square over the counts left out."""


@dataclass(frozen=True)
class Choice:
    """The law of a series: its fit, and all that were tried, the simplest first."""

    fit: Fit
    trials: tuple[Trial, ...]

    @property
    def error(self) -> float:
        """Error of the chosen law."""
        return next(trial.error for trial in self.trials if trial.law.name == self.fit.law.name)


def choose(counts: Sequence[int], seconds: Sequence[float], work: Work = "strong") -> Choice | None:
    """Choose a law for runs: one number of workers and one training time each.

    Returns None below three different counts, and for times that are not positive numbers.
    """
    different = len(set(counts))
    if different < MINIMUM_COUNTS:
        return None
    laws = [law for law in CANDIDATES[work] if len(law.terms) == 2 or different >= FOR_MORE]
    fits = [fit(law, counts, seconds) for law in laws]
    if any(found is None for found in fits):
        return None
    trials = tuple(Trial(law, foretelling_error(law, counts, seconds)) for law in laws)
    best = trials[0]
    for trial in trials[1:]:
        if beats(trial.error, best.error):
            best = trial
    chosen = next(found for found in fits if found is not None and found.law is best.law)
    return Choice(chosen, trials)


def beats(error: float, simpler: float) -> bool:
    """Whether a law with more terms foretells so much better that it is taken."""
    return simpler > ROUNDING and error < GAIN * simpler


def foretelling_error(law: Law, counts: Sequence[int], seconds: Sequence[float]) -> float:
    """Root mean square of the relative errors at counts left out, one after another."""
    import numpy as np

    n, times = np.asarray(counts, float), np.asarray(seconds, float)
    different = np.unique(n)
    squares = []
    for left in different:
        rest = n != left
        told = float(law.seconds([left], relative(law, n[rest], times[rest]))[0])
        out = float(np.log(times[~rest]).mean())
        squares.append((out - math.log(told)) ** 2 if 0 < told < math.inf else math.inf)
    return math.sqrt(sum(squares) / len(squares))
