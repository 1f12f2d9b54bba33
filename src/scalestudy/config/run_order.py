"""The order of a study's runs."""

import hashlib
from collections.abc import Sequence
from typing import Any

from scalestudy.config.point import Point
from scalestudy.config.settings import StoredSettings


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
        digest = hashlib.sha256(study_text.encode()).hexdigest()
        return cls(seed=int(digest[:8], 16))

    def arrange(self, points: Sequence[Point]) -> list[Point]:
        """Return the study's points, given row by row, in the order of their runs.

        Each has its place in it, and the number of blocks.

        Blocks come in the order in which their seeds and splits first occur. Inside a block, points are
        sorted by a digest of the order's seed and their name, so that adding seeds, workers or other values
        never changes the relative order of two points.
        """
        # In the order of their first occurrence: a dictionary keeps it.
        blocks: dict[tuple[Any, ...], int] = {}
        for point in points:
            blocks.setdefault(point.block, len(blocks))

        def place_of(point: Point) -> tuple[int, bytes]:
            return blocks[point.block], self._digest(point)

        arranged = []
        for place, point in enumerate(sorted(points, key=place_of)):
            known = {"place": place, "blocks": len(blocks)}
            arranged.append(point.model_copy(update=known))
        return arranged

    def _digest(self, point: Point) -> bytes:
        # Not by shuffling, with which a further point would change the order of all others.
        return hashlib.sha256(f"{self.seed} {point.name}".encode()).digest()
