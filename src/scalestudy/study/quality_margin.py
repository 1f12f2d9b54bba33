"""stub"""

from dataclasses import dataclass


@dataclass(frozen=True)
class QualityMargin:
    value: float
    relative: bool = False
