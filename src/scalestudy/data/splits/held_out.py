"""Which rows are held out of the training set: a share or a fold, of every class alike, groups whole.

Groups come in a drawn order, each to the side that lacks it most; then single groups move as long as that
helps (the refinement of Kernighan and Lin, 1970, one part at a time). All in whole numbers, so that every
machine finds the same.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError

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


Indices = npt.NDArray[np.int64]

DEFAULT_SHARE = 0.2


@dataclass(frozen=True)
class Fold:
    """One part of several that a set is cut into: part `index`, counted from 0, of `of`."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"fold{self.index}of{self.of}"


def held_out(prepared: Prepared, rows: Indices, validation: float | Fold | None, seed: int) -> Indices:
    """Of `rows`, those to validate on; sorted, and never empty, nor all.

    Args:
        prepared: Their data set; says their classes and groups.
        rows: Rows to choose from, sorted.
        validation: A share (a fifth when None, then at least one row), or one of several folds. All folds of
            a set and seed are disjoint and together `rows`; their sizes differ by one, or the largest group.
        seed: What is drawn from.

    Raises:
        UserError: There are not enough rows or groups for it.
    """
    draw = np.random.default_rng(seed)
    labels = np.zeros(len(rows), np.int64) if prepared.class_of_each is None else prepared.class_of_each[rows]
    sizes = np.bincount(labels, minlength=prepared.classes)
    if isinstance(validation, Fold):
        fold: Indices = rows[_folds(prepared, rows, labels, validation, draw) == validation.index]
        return fold
    count = _count(len(rows), validation)
    quotas = apportion(sizes, count)
    if prepared.groups is None:
        drawn = [draw.permutation(rows[labels == label])[:quota] for label, quota in enumerate(quotas)]
        return np.sort(np.concatenate(drawn))
    member, groups = _groups(prepared, rows, labels)
    if len(groups) < 2:
        raise _too_few(prepared, len(groups), 2, "one to train on and one to validate on")
    side = allot(groups, np.array([quotas, sizes - quotas]), draw)
    held: Indices = rows[side[member] == 0]
    return held


def apportion(sizes: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """Share out `count` draws over classes of these sizes by largest remainders.

    A class is emptied only if there is no other way.
    """
    exact = count * sizes / sizes.sum()
    quotas: npt.NDArray[np.int64] = np.floor(exact).astype(np.int64)
    for _ in range(count - int(quotas.sum())):
        best = np.lexsort((quotas - exact, quotas + 1 >= sizes, quotas >= sizes))[0]
        quotas[best] += 1
    return quotas


def _folds(
    prepared: Prepared, rows: Indices, labels: Indices, fold: Fold, draw: np.random.Generator
) -> Indices:
    """The fold of each of `rows`: dealt out like cards, class after class, so that all are even."""
    if len(rows) < fold.of:
        raise UserError(
            f"at least {fold.of} samples to cut into {fold.of} folds",
            f"{len(rows)} in {prepared.path}",
            "Choose fewer `folds`, or add samples.",
        )
    order = draw.permutation(len(rows))
    dealt = np.empty(len(rows), np.int64)
    dealt[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(rows)) % fold.of
    if prepared.groups is None:
        return dealt
    member, groups = _groups(prepared, rows, labels)
    if len(groups) < fold.of:
        raise _too_few(prepared, len(groups), fold.of, "one for each fold")
    wanted = np.zeros((fold.of, max(1, prepared.classes)), np.int64)
    np.add.at(wanted, (dealt, labels), 1)
    return allot(groups, wanted, draw)[member]


def _groups(prepared: Prepared, rows: Indices, labels: Indices) -> tuple[Indices, Indices]:
    """The group of each of `rows`, and the samples of each class in each group [G, C]."""
    texts = np.array(prepared.groups)[rows]
    names, member = np.unique(texts, return_inverse=True)
    counts = np.zeros((len(names), max(1, prepared.classes)), np.int64)
    np.add.at(counts, (member, labels), 1)
    return member, counts


def _count(available: int, share: float | None) -> int:
    taken = DEFAULT_SHARE if share is None else share
    count = round(taken * available)
    if share is None:
        count = min(max(count, 1), available - 1)
    if not 0 < count < available:
        raise UserError(
            f"a share that leaves at least one of {available} samples on each side",
            f"`validation = {taken}`, that is {count} samples to validate on",
            "Choose a share nearer to 0.5, or add samples.",
        )
    return count


def _too_few(prepared: Prepared, samples: int, needed: int, why: str) -> UserError:
    return UserError(
        f"at least {needed} groups of samples, {why}",
        f"{samples} in {prepared.path}",
        "Group the samples more finely, or add samples.",
    )
