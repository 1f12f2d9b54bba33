"""Which rows are held out of the training set: a share or a fold, of every class alike, groups whole."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.allot import allot
from scalestudy.data.prepared import Prepared
from scalestudy.errors import UserError

Indices = npt.NDArray[np.int64]

DEFAULT_SHARE = 0.2


@dataclass(frozen=True)
class Fold:
    """One part of several that a set is cut into: part `index`, counted from 0, of `of`."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"fold{self.index}of{self.of}"


def held_out(prepared: Prepared, rows: Indices, asked: float | Fold | None, seed: int) -> Indices:
    """Of `rows`, those to validate on; sorted, and never empty, nor all.

    Args:
        prepared: Their data set; says their classes and groups.
        rows: Rows to choose from, sorted.
        asked: A share (a fifth when None, then at least one row), or one of several folds. All folds of a
            set and seed are disjoint and together `rows`; their sizes differ by one, or by the largest group.
        seed: What is drawn from.

    Raises:
        UserError: There are not enough rows or groups for it.
    """
    draw = np.random.default_rng(seed)
    labels = np.zeros(len(rows), np.int64) if prepared.class_of_each is None else prepared.class_of_each[rows]
    sizes = np.bincount(labels, minlength=prepared.classes)
    if isinstance(asked, Fold):
        fold: Indices = rows[_folds(prepared, rows, labels, asked, draw) == asked.index]
        return fold
    count = _count(len(rows), asked)
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
    prepared: Prepared, rows: Indices, labels: Indices, asked: Fold, draw: np.random.Generator
) -> Indices:
    """The fold of each of `rows`: dealt out like cards, class after class, so that all are even."""
    if len(rows) < asked.of:
        raise UserError(
            f"at least {asked.of} samples to cut into {asked.of} folds",
            f"{len(rows)} in {prepared.path}",
            "Choose fewer `folds`, or add samples.",
        )
    order = draw.permutation(len(rows))
    dealt = np.empty(len(rows), np.int64)
    dealt[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(rows)) % asked.of
    if prepared.groups is None:
        return dealt
    member, groups = _groups(prepared, rows, labels)
    if len(groups) < asked.of:
        raise _too_few(prepared, len(groups), asked.of, "one for each fold")
    wanted = np.zeros((asked.of, max(1, prepared.classes)), np.int64)
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


def _too_few(prepared: Prepared, found: int, needed: int, why: str) -> UserError:
    return UserError(
        f"at least {needed} groups of samples, {why}",
        f"{found} in {prepared.path}",
        "Group the samples more finely, or add samples.",
    )
