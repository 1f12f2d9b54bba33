"""How many samples, groups and samples of each class are on each side of a split."""

from dataclasses import dataclass

import numpy as np

from scalestudy.data.prepared import Prepared
from scalestudy.data.split import Split


@dataclass(frozen=True)
class Counts:
    """One side of a split.

    Attributes:
        side: "train", "validation" or "test".
        samples: How many there are.
        groups: How many groups they are of; None where samples have none.
        classes: Samples of each class by its name, in order; None for masks.
    """

    side: str
    samples: int
    groups: int | None
    classes: dict[str, int] | None

    def __str__(self) -> str:
        groups = "" if self.groups is None else f" in {self.groups} groups"
        classes = ", ".join(f"{name} {count}" for name, count in (self.classes or {}).items())
        return f"{self.side}: {self.samples}{groups}{f' ({classes})' if classes else ''}"


def counts(prepared: Prepared, split: Split) -> list[Counts]:
    """Every side that has samples, "train" first."""
    sides = []
    for side in ("train", "validation", "test"):
        rows = getattr(split, side)
        if not len(rows):
            continue
        groups = None if prepared.groups is None else len({prepared.groups[row] for row in rows.tolist()})
        classes = None
        if prepared.class_of_each is not None:
            found = np.bincount(prepared.class_of_each[rows], minlength=prepared.classes)
            classes = dict(zip(prepared.class_names, found.tolist(), strict=True))
        sides.append(Counts(side, len(rows), groups, classes))
    return sides
