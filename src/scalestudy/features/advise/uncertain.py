"""Numbers that are known within a range, and draws from them."""

from dataclasses import dataclass
from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.float64]
"""Shape [draws]."""
NORMAL_95 = 1.959964
"""Half of the standard normal's 95 % interval."""


@dataclass(frozen=True)
class Uncertain:
    """A number, the best guess, and its range.

    Of a "factor", which is positive, the logarithm is normal, and the range holds 95 %; of a "share" anything
    in the range is as likely.
    """

    value: float
    low: float
    high: float
    kind: Literal["factor", "share"] = "factor"

    def draws(self, random: np.random.Generator, count: int) -> Draws:
        """So many values. Always takes the same amount from `random`, so estimates compare."""
        if self.kind == "share":
            return self.low + (self.high - self.low) * random.random(count)
        normal = random.standard_normal(count)
        if self.value == 0 or self.low == self.high:
            return np.full(count, self.value)
        return self.value * np.exp(normal * log(self.high / self.low) / (2 * NORMAL_95))


def exactly(value: float) -> Uncertain:
    """A number that is known."""
    return Uncertain(value, value, value)


def about(value: float, factor: float) -> Uncertain:
    """A positive number that lies within this factor, either way, with 95 %."""
    return Uncertain(value, value / factor, value * factor)


def between(low: float, high: float) -> Uncertain:
    """A number of which only the ends are known."""
    return Uncertain((low + high) / 2, low, high, "share")
