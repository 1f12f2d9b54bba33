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
        value, relative = given, False
        if isinstance(given, str):
            percent = _PERCENT.fullmatch(given.strip())
            if percent is not None:
                value, relative = Decimal(percent[1]) / 100, True
        # True is an int, too.
        is_number = isinstance(value, int | float | Decimal)
        if not is_number or isinstance(value, bool) or not 0 < value < LARGEST_MARGIN:
            raise ValueError(
                'a number above 0 in units of the metric, or a percentage as "2 %"'
            )
        return cls(float(value), relative=relative)

    @property
    def key(self) -> float | str:
        """The margin as in a study file."""
        if not self.relative:
            return self.value
        # In decimal: 0.07 * 100 is 7.000000000000001 in binary.
        percent = Decimal(repr(self.value)) * 100
        return f"{percent.normalize():f} %"

    def __str__(self) -> str:
        return str(self.key)
