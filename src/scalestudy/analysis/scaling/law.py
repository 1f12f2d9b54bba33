"""What a law of scaling is: training time as a sum of terms in the number of workers, none negative."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    """One term: how it is written after its number, and its shape in n."""

    text: str
    """"" for a constant, "/n", " log2 n", " n"."""
    shape: "Callable[[Array], Array]"
    """Takes and returns [counts]."""
    words: str = ""
    """What it stands for."""


@dataclass(frozen=True)
class Law:
    """A law of scaling.

    Attributes:
        name: As in files: "amdahl".
        label: As in sentences: "Amdahl's law".
        terms: Whose sum is T(n); of a reciprocal law n/T(n), the work of n workers per second.
        source: Where it was published.
        reciprocal: Whether the terms are of n/T(n).
    """

    name: str
    label: str
    terms: tuple[Term, ...]
    source: str
    reciprocal: bool = False

    def columns(self, counts: "Sequence[float] | Array") -> "Array":
        """Shapes of the terms, [counts, terms]."""
        import numpy as np

        n = np.asarray(counts, float)
        found: Array = np.empty((len(n), len(self.terms)))
        for place, term in enumerate(self.terms):
            found[:, place] = term.shape(n)
        return found

    def left(self, counts: "Array", seconds: "Array") -> "Array":
        """What the terms add up to: seconds, or work per second, [counts]."""
        return counts / seconds if self.reciprocal else seconds

    def seconds(self, counts: "Sequence[float] | Array", coefficients: "Sequence[float] | Array") -> "Array":
        """T(n) in seconds, [counts]."""
        import numpy as np

        n = np.asarray(counts, float)
        total: Array = self.columns(n) @ np.asarray(coefficients, float)
        return n / total if self.reciprocal else total

    def written(self, coefficients: Sequence[float]) -> str:
        """The law in seconds, without the terms that are zero: `T(n) = 96.2 + 467/n s`."""
        largest = max(coefficients)
        parts = [
            f"{_three_digits(value)}{term.text}"
            for value, term in zip(coefficients, self.terms, strict=True)
            if value > 1e-9 * largest
        ]
        total = " + ".join(parts) or "0"
        return f"T(n) = n / ({total}) s" if self.reciprocal else f"T(n) = {total} s"


def _three_digits(value: float) -> str:
    """`0.0123`, `4.57`, `7,540`: never in exponents above that."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


CONSTANT = Term("", lambda n: n**0, "what every worker does anew, or waits for")
SHARED = Term("/n", lambda n: 1 / n, "work that is shared out")
