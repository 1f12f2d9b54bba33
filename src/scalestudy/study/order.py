"""The order in which the runs of a study are taken."""

import hashlib
from collections.abc import Sequence

from scalestudy.study.point import Point, Turn
from scalestudy.study.settings import Order, Section


class RunOrder(Section):
    """Randomised blocks, one for each seed, or row by row; stored with the study.

    A block holds every row once, so slow drift of a machine falls on all rows alike and can be told from
    their differences (Montgomery, Design and Analysis of Experiments, randomised complete block design).
    """

    by: Order = "blocks"
    seed: int = 0
    """Of the permutations of blocks; drawn once for a study."""

    @classmethod
    def drawn_from(cls, study_text: str) -> "RunOrder":
        """Blocks, with a seed that is a digest of the study file: a dry run shows what a run then takes."""
        return cls(seed=int(hashlib.sha256(study_text.encode()).hexdigest()[:8], 16))

    def arrange(self, points: Sequence[Point]) -> list[Point]:
        """The points in the order of their runs, each with its turn.

        Blocks come in the order in which their seeds first occur. Inside a block points are sorted by a
        digest of order seed and name, so the relative order of two points of a block depends on these alone:
        adding seeds, workers or other values never changes it.

        Args:
            points: All points of the study, row by row.
        """
        if self.by == "blocks":
            blocks = {seed: block for block, seed in enumerate(dict.fromkeys(each.seed for each in points))}
            points = sorted(points, key=lambda point: (blocks[point.seed], self._digest(point)))
        return [
            point.model_copy(update={"turn": Turn(order=self.by, place=place)})
            for place, point in enumerate(points)
        ]

    def _digest(self, point: Point) -> bytes:
        return hashlib.sha256(f"{self.seed} {point.name}".encode()).digest()
