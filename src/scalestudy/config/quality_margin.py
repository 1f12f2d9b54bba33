"""A margin of quality, as a number or a percentage."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

LARGEST_MARGIN = 1e12
"""Upper limit, far above any meaningful margin."""
_PERCENT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?%")


@dataclass(frozen=True)
class QualityMargin:
    """A non-inferiority margin.

    Attributes:
        value: Above 0; in units of the metric, or as a fraction of the reference's quality.
        relative: Whether `value` is a fraction.
    """

    value: float
    relative: bool = False

    @classmethod
    def parse(cls, given: Any) -> "QualityMargin":
        """Parse a margin of a study file: `0.01` or `"2 %"`.

        Raises:
            ValueError: It is not a margin; the error says what is expected.
        """
        percent = _PERCENT.fullmatch(given.strip()) if isinstance(given, str) else None
        value = Decimal(percent[1]) / 100 if percent else given
        number = isinstance(value, int | float | Decimal) and not isinstance(
            value, bool
        )
        if not number or not 0 < value < LARGEST_MARGIN:
            raise ValueError(
                'a number above 0 in units of the metric, or a percentage as "2 %"'
            )
        return cls(float(value), relative=percent is not None)

    @property
    def key(self) -> float | str:
        """The margin as in a study file."""
        return (
            f"{(Decimal(repr(self.value)) * 100).normalize():f} %"
            if self.relative
            else self.value
        )

    def __str__(self) -> str:
        return str(self.key)
