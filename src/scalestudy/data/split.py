"""Training, validation and test rows: chosen once by a seed, disjoint, and stored.

Rows to validate on are a share or a fold of the training set, stratified by class, with groups kept whole:
groups are assigned in random order, each to the side that lacks it most; then single groups move as long as
this improves the balance (a refinement as in Kernighan and Lin, 1970, one group at a time). All arithmetic is
in integers, so the result is the same on every machine.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from scalestudy.config.settings import DataSettings
from scalestudy.data.samples import Indices
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

Table = npt.NDArray[np.int64]
"""Number of samples by group or side (rows) and class (columns)."""
NEVER = np.iinfo(np.int64).max

DEFAULT_SHARE = 0.2


@dataclass(frozen=True)
class Fold:
    """Fold `index`, counted from 0, of `of` folds."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"fold{self.index}of{self.of}"


def hold_out(prepared: Prepared, rows: Indices, validation: float | Fold | None, seed: int) -> Indices:
    """Return the rows to validate on, sorted: at least one, and not all of `rows`.

    Args:
        prepared: Data set with the classes and groups of the rows.
        rows: Rows to choose from, sorted.
        validation: A share, or a fold. None means a fifth, and at least one row. All folds of a set and seed
            are disjoint and together contain all `rows`; their sizes differ by at most one, or by the largest
            group.
        seed: Seed of the random choice.

    Raises:
        UserError: If there are not enough rows or groups.
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
    sides = _Sides(groups, np.array([quotas, sizes - quotas]), draw)
    held: Indices = rows[sides.of_group[member] == 0]
    return held


def apportion(sizes: Indices, count: int) -> Indices:
    """Distribute `count` draws over classes of these sizes by the largest-remainder method.

    All samples of a class are drawn only if there is no other way.
    """
    exact = count * sizes / sizes.sum()
    quotas: Indices = np.floor(exact).astype(np.int64)
    for _ in range(count - int(quotas.sum())):
        best = np.lexsort((quotas - exact, quotas + 1 >= sizes, quotas >= sizes))[0]
        quotas[best] += 1
    return quotas


class _Sides:
    """Assignment of groups [G, C] to sides; `surplus` [S, C] is each side's excess over the wanted numbers.

    The total of a side weighs as much as all its classes together. In the end the surpluses of two sides
    differ by at most the largest group, or one of them is a single group.
    """

    def __init__(self, groups: Table, wanted: Table, draw: np.random.Generator) -> None:
        groups, wanted = (np.column_stack([table, table.sum(axis=1)]) for table in (groups, wanted))
        total = groups.sum(axis=0)
        weights = np.where(total, total[-1] // np.maximum(total, 1), 0)
        weights[-1] = max(1, len(total) - 1)
        self.groups, self.weighted, self.surplus = groups, groups * weights, -wanted
        self.of_group = np.zeros(len(groups), np.int64)
        self.members = np.zeros(len(wanted), np.int64)
        for group in draw.permutation(len(groups)):
            side = int(np.argmin(self.surplus @ self.weighted[group]))
            self.of_group[group] = side
            self.members[side] += 1
            self.surplus[side] += groups[group]
        self._squares = (groups * self.weighted).sum(axis=1)
        while not self.members.all():  # each side gets at least one group
            self._move_best(to=int(np.argmin(self.members)), although_worse=True)
        while self._move_best():
            pass
        self._even_out()

    def _even_out(self) -> None:
        """Balance the totals as far as whole groups allow, even if the balance of classes suffers."""
        largest = int(self.groups[:, -1].max())
        while True:
            over = np.where(self.members > 1, self.surplus[:, -1], np.iinfo(np.int64).min)
            most, least = int(np.argmax(over)), int(np.argmin(self.surplus[:, -1]))
            if self.members[most] < 2 or over[most] - self.surplus[least, -1] <= largest:
                return
            self._move_best(to=least, of=most, although_worse=True)

    def _move_best(
        self, to: int | None = None, of: int | None = None, *, although_worse: bool = False
    ) -> bool:
        """Move the group that improves the balance most; only from side `of` or to side `to` if given."""
        sides, rows = self.of_group, np.arange(len(self.of_group))
        # Half the change of the weighted sum of squares if a group moves to a side, shape [G, S].
        pull = self.weighted @ self.surplus.T
        change = pull - pull[rows, sides][:, None] + self._squares[:, None]
        change[self.members[sides] < 2] = NEVER
        change[rows, sides] = NEVER
        if to is not None:
            change[:, np.arange(len(self.members)) != to] = NEVER
        if of is not None:
            change[sides != of] = NEVER
        group, side = np.unravel_index(int(np.argmin(change)), change.shape)
        if change[group, side] == NEVER or (change[group, side] >= 0 and not although_worse):
            return False
        self.surplus[sides[group]] -= self.groups[group]
        self.members[sides[group]] -= 1
        self.surplus[side] += self.groups[group]
        self.members[side] += 1
        sides[group] = side
        return True


def _folds(
    prepared: Prepared, rows: Indices, labels: Indices, fold: Fold, draw: np.random.Generator
) -> Indices:
    """Return the fold of each of `rows`. Rows are dealt to the folds in turn, class after class."""
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
    folds: Indices = _Sides(groups, wanted, draw).of_group[member]
    return folds


def _groups(prepared: Prepared, rows: Indices, labels: Indices) -> tuple[Indices, Indices]:
    """Return the group of each of `rows`, and the number of samples by group and class [G, C]."""
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
            f"a share that leaves a sample on each side, of {available}",
            f"`validation = {taken}`, which is {count} validation samples",
            "Choose a share nearer to 0.5, or add samples.",
        )
    return count


def _too_few(prepared: Prepared, samples: int, needed: int, why: str) -> UserError:
    return UserError(
        f"at least {needed} groups of samples, {why}",
        f"{samples} in {prepared.path}",
        "Use smaller groups, or add samples.",
    )


HeldOut = float | Fold | Literal["given"] | None
"""Validation set: a share of the training set, a fold, the source's own, or the default."""

SPLIT_SCHEMA = 1
SIDES = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of a prepared data set by use: sorted and disjoint; together they are all rows.

    Attributes:
        train: Rows to train on, at least one.
        validation: Rows to measure the quality on, at least one.
        test: Remaining rows, not used by runs; may be empty.
        quality_split: "validation", or "test" if `validation` is the source's test set.
        path: File of the split, or None.
    """

    train: Indices
    validation: Indices
    test: Indices
    quality_split: str = "validation"
    path: Path | None = None

    @classmethod
    def load(cls, path: Path | str) -> "Split":
        """Read a stored split; raises `UserError` if the file is missing or damaged."""
        file = Path(path)
        try:
            stored = json.loads(file.read_bytes())
            rows = [np.asarray(stored[name], np.int64) for name in SIDES]
            everything = np.sort(np.concatenate(rows))
            if stored["schema_version"] != SPLIT_SCHEMA or not len(rows[0]) or not len(rows[1]):
                raise ValueError("not a split of this version")
            if not np.array_equal(everything, np.arange(len(everything))):
                raise ValueError("its rows overlap or leave some out")
            return cls(rows[0], rows[1], rows[2], str(stored["quality_split"]), file)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UserError(
                "a stored split", f"{file}: {error}", "Delete that file and run again to make a new one."
            ) from error


def validation_of(data: DataSettings) -> HeldOut:
    """Return what the section [data] asks to validate on.

    Raises:
        UserError: If the fold does not exist, or both folds and a share are given.
    """
    if data.folds is None:
        return data.validation
    if data.fold >= data.folds or data.validation is not None:
        raise UserError(
            f"a fold from 0 to {data.folds - 1}, and no `validation` together with `folds`",
            f"fold = {data.fold}, validation = {data.validation}",
            "Correct the keys under [data].",
        )
    return Fold(data.fold, data.folds)


def make_split(prepared: Prepared, validation: HeldOut, seed: int) -> Split:
    """Split a data set into training, validation and test rows.

    If `validation` is None, the source's validation set is used, else its test set (`quality_split` is then
    "test"), else a fifth of the samples. A share or a fold is taken from all rows but the source's test set,
    stratified if samples have classes. The source's test set is never trained on. Groups stay on one side;
    shares and folds are met as closely as whole groups allow.

    Raises:
        UserError: If `validation` is "given" and the source has no such set, if a share leaves a side without
            samples, or if the source's own split divides a group.
    """
    given = {name: np.arange(start, stop, dtype=np.int64) for name, (start, stop) in prepared.given.items()}
    none = np.zeros(0, np.int64)
    test = given.get("test", none)
    if not isinstance(validation, float | Fold):
        if len(given.get("validation", none)):
            return _whole(prepared, Split(given["train"], given["validation"], test))
        if len(test):
            return _whole(prepared, Split(given["train"], test, none, "test"))
        if validation == "given":
            raise UserError(
                "a source with a validation or test set",
                f'`validation = "given"` for {prepared.path}, which has neither',
                "Give a share such as `validation = 0.2`, or add a folder val/.",
            )
    rows = np.setdiff1d(np.arange(prepared.count, dtype=np.int64), test)
    held = hold_out(prepared, rows, validation, seed)
    return _whole(prepared, Split(np.setdiff1d(rows, held), held, test))


def ensure_split(prepared: Prepared, validation: HeldOut, seed: int) -> Split:
    """Return the split with these parameters from the prepared folder; make and store it the first time.

    Raises:
        UserError: As in `make_split`, or if the folder is not writable.
    """
    split = find_split(prepared, validation, seed)
    if split is not None:
        return split
    file = _file(prepared, validation, seed)
    split = replace(make_split(prepared, validation, seed), path=file)
    stored = {
        "schema_version": SPLIT_SCHEMA,
        "quality_split": split.quality_split,
        "validation": str(validation) if isinstance(validation, Fold) else validation,
        "seed": seed,
        "fingerprint": prepared.fingerprint,
    } | {side: getattr(split, side).tolist() for side in SIDES}
    try:
        write_atomically(file, json.dumps(stored) + "\n")
    except OSError as error:
        raise UserError(
            "a cache folder that can be written to",
            f"{file.parent}: {error.strerror}",
            "Name another one as `cache` under [data].",
        ) from error
    return split


def find_split(prepared: Prepared, validation: HeldOut, seed: int) -> Split | None:
    """Return the split stored by `ensure_split`, or None if it is missing, damaged or of other rows.

    `ensure_split` makes the same split again.
    """
    try:
        split = Split.load(_file(prepared, validation, seed))
    except UserError:
        return None
    return split if len(split.train) + len(split.validation) + len(split.test) == prepared.count else None


def counts(prepared: Prepared, split: Split) -> list[str]:
    """Describe each side with samples, "train" first: its samples, groups, and samples by class."""
    sides = []
    for side in SIDES:
        rows = getattr(split, side)
        if not len(rows):
            continue
        words = f"{side}: {len(rows)}"
        if prepared.groups is not None:
            words += f" in {len({prepared.groups[row] for row in rows.tolist()})} groups"
        if prepared.class_of_each is not None:
            samples_of = np.bincount(prepared.class_of_each[rows], minlength=prepared.classes).tolist()
            by_class = zip(prepared.class_names, samples_of, strict=True)
            words += f" ({', '.join(f'{name} {count}' for name, count in by_class)})"
        sides.append(words)
    return sides


def untrained(prepared: Prepared, split: Split) -> list[str]:
    """Return the names of the classes without a training sample."""
    if prepared.class_of_each is None:
        return []
    trained = set(prepared.class_of_each[split.train].tolist())
    return [name for index, name in enumerate(prepared.class_names) if index not in trained]


def _file(prepared: Prepared, validation: HeldOut, seed: int) -> Path:
    name = "default" if validation is None else str(validation)
    return prepared.path / f"split-{name}-{seed}.json"


def _whole(prepared: Prepared, split: Split) -> Split:
    """Return the split unchanged; refuse one that divides a group, as the source's own split may."""
    if prepared.groups is None:
        return split
    side_of: dict[str, str] = {}
    for side in SIDES:
        for row in getattr(split, side).tolist():
            group = prepared.groups[row]
            if side_of.setdefault(group, side) != side:
                raise UserError(
                    "each group of samples on one side of the source's split",
                    f"{group!r} in {side_of[group]} and in {side} ({prepared.names[row]}) of {prepared.path}",
                    "Move its samples to one side, or group them in another way.",
                )
    return split
