"""Allot whole groups of samples to the sides of a split, as near to each side's classes as they allow.

Groups come in a drawn order, each to the side that lacks it most; then single groups move as long as that
helps (the refinement of Kernighan and Lin, 1970, one part at a time). All in whole numbers, so that every
machine finds the same.
"""

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]


def allot(groups: Counts, wanted: Counts, draw: np.random.Generator) -> Counts:
    """The side of each group.

    The total of each side is weighed like all its classes together. In the end two sides differ in their
    surplus by no more than the largest group, or one of them is a single group.

    Args:
        groups: [G, C], samples of each class in each group; at least as many groups as sides.
        wanted: [S, C], samples of each class that each side should get.
        draw: Gives the order.

    Returns:
        [G], a number from 0 to S-1 for each group; every side gets one at least.
    """
    groups, wanted = _with_total(groups), _with_total(wanted)
    total = groups.sum(axis=0)
    weights = np.where(total, total[-1] // np.maximum(total, 1), 0)
    weights[-1] = max(1, len(total) - 1)
    sides = _Sides(groups, groups * weights, wanted, draw.permutation(len(groups)))
    sides.fill()
    sides.improve()
    sides.even_out()
    return sides.of_group


class _Sides:
    """Groups on sides; `surplus` [S, C] is what each side has above what is wanted."""

    def __init__(self, groups: Counts, weighted: Counts, wanted: Counts, order: Counts) -> None:
        self.groups, self.weighted, self.surplus = groups, weighted, -wanted
        self.of_group = np.zeros(len(groups), np.int64)
        self.members = np.zeros(len(wanted), np.int64)
        for group in order:
            side = int(np.argmin(self.surplus @ weighted[group]))
            self.of_group[group] = side
            self.members[side] += 1
            self.surplus[side] += groups[group]
        self._own = (groups * weighted).sum(axis=1)

    def fill(self) -> None:
        """Give each side one group at least."""
        while not self.members.all():
            self._best_move(to=int(np.argmin(self.members)), although_worse=True)

    def improve(self) -> None:
        """Move one group after the other while that brings all nearer to what is wanted."""
        while self._best_move():
            pass

    def even_out(self) -> None:
        """Bring the totals as near as whole groups allow, whatever becomes of the classes."""
        largest = int(self.groups[:, -1].max())
        while True:
            over = np.where(self.members > 1, self.surplus[:, -1], np.iinfo(np.int64).min)
            most, least = int(np.argmax(over)), int(np.argmin(self.surplus[:, -1]))
            if self.members[most] < 2 or over[most] - self.surplus[least, -1] <= largest:
                return
            self._best_move(to=least, of=most, although_worse=True)

    def _best_move(
        self, to: int | None = None, of: int | None = None, *, although_worse: bool = False
    ) -> bool:
        """Move the group that helps most: of one side or to one side only, if these are named."""
        here = self.of_group
        # Half the change of the weighted sum of squares by each group's move to each side [G, S].
        pull = self.weighted @ self.surplus.T
        change = pull - pull[np.arange(len(here)), here][:, None] + self._own[:, None]
        never = np.iinfo(np.int64).max
        change[self.members[here] < 2] = never
        change[np.arange(len(here)), here] = never
        if to is not None:
            change[:, np.arange(len(self.members)) != to] = never
        if of is not None:
            change[here != of] = never
        group, side = np.unravel_index(int(np.argmin(change)), change.shape)
        if change[group, side] == never or (change[group, side] >= 0 and not although_worse):
            return False
        self.surplus[here[group]] -= self.groups[group]
        self.members[here[group]] -= 1
        self.surplus[side] += self.groups[group]
        self.members[side] += 1
        here[group] = side
        return True


def _with_total(counts: Counts) -> Counts:
    return np.column_stack([counts, counts.sum(axis=1)]).astype(np.int64)
