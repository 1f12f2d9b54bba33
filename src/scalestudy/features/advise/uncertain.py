"""Numbers with a range, and random draws from them."""

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
    """A best guess and its range.

    A "factor" is positive and log-normal, and its range holds 95 %. A "share" is uniform over its range.
    """

    value: float
    low: float
    high: float
    kind: Literal["factor", "share"] = "factor"

    def draws(self, random: np.random.Generator, count: int) -> Draws:
        """Draw `count` values. The state of `random` advances equally for any range, so estimates compare."""
        if self.kind == "share":
            return self.low + (self.high - self.low) * random.random(count)
        normal = random.standard_normal(count)
        if self.value == 0 or self.low == self.high:
            return np.full(count, self.value)
        return self.value * np.exp(normal * log(self.high / self.low) / (2 * NORMAL_95))


def exactly(value: float) -> Uncertain:
    """Return a number without uncertainty."""
    return Uncertain(value, value, value)


def about(value: float, factor: float) -> Uncertain:
    """Return a positive number that is within this factor, up or down, with a probability of 95 %."""
    return Uncertain(value, value / factor, value * factor)


def between(low: float, high: float) -> Uncertain:
    """Return a number of which only the lower and upper ends are known."""
    return Uncertain((low + high) / 2, low, high, "share")
