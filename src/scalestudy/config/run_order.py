"""The order of a study's runs."""

import hashlib
from collections.abc import Sequence

from scalestudy.config.point import Point
from scalestudy.config.settings import (
    StoredSettings,
)


class RunOrder(StoredSettings):
    """Randomised blocks, one for each seed and split; stored with the study.

    A block contains every row once, so that slow drift of a machine affects all rows equally and can be
    separated from their differences (Montgomery, Design and Analysis of Experiments, randomised complete
    block design).
    """

    seed: int = 0
    """Seed of the permutations of blocks; drawn once for a study."""

    @classmethod
    def drawn_from(cls, study_text: str) -> "RunOrder":
        """Blocks with a digest of the study file as seed, so that a dry run shows the order of the run."""
        return cls(seed=int(hashlib.sha256(study_text.encode()).hexdigest()[:8], 16))

    def arrange(self, points: Sequence[Point]) -> list[Point]:
        """Return the study's points, given row by row, in the order of their runs.

        Each has its place in it, and the number of blocks.

        Blocks come in the order in which their seeds and splits first occur. Inside a block, points are
        sorted by a digest of the order's seed and their name, so that adding seeds, workers or other values
        never changes the relative order of two points.
        """
        # In the order of their first occurrence: a dictionary keeps it.
        names = dict.fromkeys(point.block for point in points)
        blocks = {name: place for place, name in enumerate(names)}
        points = sorted(
            points, key=lambda point: (blocks[point.block], self._digest(point))
        )
        return [
            point.model_copy(update={"place": place, "blocks": len(blocks)})
            for place, point in enumerate(points)
        ]

    def _digest(self, point: Point) -> bytes:
        return hashlib.sha256(f"{self.seed} {point.name}".encode()).digest()
