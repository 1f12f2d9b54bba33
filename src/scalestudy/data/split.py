"""Training, validation and test rows: chosen once by a seed, disjoint, and stored.

Rows to validate on are a share of the training set, stratified by class, with groups kept whole. All
arithmetic is in integers, so the result is the same on every machine.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from scalestudy.data.samples import Indices
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

HeldOut = float | Literal["given"] | None
"""Validation set: a share of the training set, the source's own, or the default."""

DEFAULT_SHARE = 0.2
SPLIT_SCHEMA = 1
SIDES = ("train", "validation", "test")


def hold_out(
    prepared: Prepared,
    rows: Indices,
    share: float | None,
    seed: int,
) -> Indices:
    """Return the rows to validate on, sorted: at least one, and not all of `rows`.

    Args:
        prepared: Data set with the classes and groups of the rows.
        rows: Rows to choose from, sorted.
        share: Share of the rows. None means a fifth, and at least one row.
        seed: Seed of the random choice.

    Raises:
        UserError: If there are not enough rows or groups.
    """
    draw = np.random.default_rng(seed)
    labels = np.zeros(len(rows), np.int64)
    if prepared.class_of_each is not None:
        labels = prepared.class_of_each[rows]
    sizes = np.bincount(labels, minlength=prepared.classes)
    quotas = apportion(sizes, _count(len(rows), share))
    if prepared.groups is None:
        drawn = []
        for label, quota in enumerate(quotas):
            of_class = rows[labels == label]
            shuffled = draw.permutation(of_class)
            drawn.append(shuffled[:quota])
        return np.sort(np.concatenate(drawn))
    groups_of_rows = np.array(prepared.groups)[rows]
    names, member = np.unique(groups_of_rows, return_inverse=True)
    if len(names) < 2:
        raise UserError(
            "at least 2 groups of samples, one to train on and one to validate on",
            f"{len(names)} in {prepared.path}",
            "Use smaller groups, or add samples.",
        )
    groups = np.zeros((len(names), len(sizes)), np.int64)
    # Not `groups[member, labels] += 1`, which counts repeated pairs once.
    np.add.at(groups, (member, labels), 1)
    held_groups = _draw_groups(groups, quotas, draw)
    held: Indices = rows[held_groups[member]]
    return held


def apportion(sizes: Indices, count: int) -> Indices:
    """Distribute `count` draws over classes of these sizes by the largest-remainder method.

    All samples of a class are drawn only if there is no other way.
    """
    exact = count * sizes / sizes.sum()
    quotas: Indices = np.floor(exact).astype(np.int64)
    missing = count - int(quotas.sum())
    for _ in range(missing):
        # Classes without a sample left come last, before them those of which all would be drawn; else the
        # largest remainder decides. `lexsort` sorts by its last key first.
        none_left = quotas >= sizes
        draws_all = quotas + 1 >= sizes
        order = np.lexsort((quotas - exact, draws_all, none_left))
        quotas[order[0]] += 1
    return quotas


def _draw_groups(
    groups: npt.NDArray[np.int64],
    quotas: Indices,
    draw: np.random.Generator,
) -> npt.NDArray[np.bool_]:
    """Return the groups [G] to hold out, given their samples by class [G, C] and the number to hold out [C].

    Groups come in random order. The first time, one is taken if this brings the classes nearer to their
    quotas; the second time, if it brings their sum nearer, which is then met within half the largest group.
    """
    sizes = groups.sum(axis=1)
    of_class = groups.sum(axis=0)
    # Rare classes weigh more, as much in all as frequent ones.
    weights = of_class.sum() // np.maximum(of_class, 1)
    lacking = quotas.copy()
    held = np.zeros(len(groups), bool)
    order = draw.permutation(len(groups))
    for by_class in (True, False):
        for group in order:
            if held[group] or sizes[group] >= 2 * lacking.sum():
                continue
            # The change of the weighted squares of what classes lack, if the group is taken.
            samples = groups[group]
            changes = weights * samples * (samples - 2 * lacking)
            if changes.sum() < 0 or not by_class:
                held[group] = True
                lacking -= samples
    # Each side needs a group, whatever the share.
    if held.all() or not held.any():
        smallest = np.argmin(sizes)
        held[smallest] = not held[smallest]
    return held


def _count(available: int, share: float | None) -> int:
    if share is None:
        taken = DEFAULT_SHARE
        count = round(taken * available)
        # Only a share that somebody chose is refused for a small set.
        count = min(max(count, 1), available - 1)
    else:
        taken = share
        count = round(taken * available)
    if not 0 < count < available:
        raise UserError(
            f"a share that leaves a sample on each side, of {available}",
            f"`validation = {taken}`, which is {count} validation samples",
            "Choose a share nearer to 0.5, or add samples.",
        )
    return count


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
            sides = [np.asarray(stored[name], np.int64) for name in SIDES]
            train, validation, test = sides
            of_this_version = stored["schema_version"] == SPLIT_SCHEMA
            if not of_this_version or not len(train) or not len(validation):
                raise ValueError("not a split of this version")
            everything = np.sort(np.concatenate(sides))
            if not np.array_equal(everything, np.arange(len(everything))):
                raise ValueError("its rows overlap or leave some out")
            return cls(
                train=train,
                validation=validation,
                test=test,
                quality_split=str(stored["quality_split"]),
                path=file,
            )
        # A file that somebody edited can hold any JSON.
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            raise UserError(
                "a stored split",
                f"{file}: {error}",
                "Delete that file and run again to make a new one.",
            ) from error


def make_split(prepared: Prepared, validation: HeldOut, seed: int) -> Split:
    """Split a data set into training, validation and test rows.

    If `validation` is None, the source's validation set is used, else its test set (`quality_split` is then
    "test"), else a fifth of the samples. A share is taken from all rows but the source's test set, stratified
    if samples have classes. The source's test set is never trained on. Groups stay on one side.

    Raises:
        UserError: If `validation` is "given" and the source has no such set, if a share leaves a side without
            samples, or if the source's own split divides a group.
    """
    none = np.zeros(0, np.int64)
    given = dict.fromkeys(SIDES, none)
    for name, (start, stop) in prepared.given.items():
        given[name] = np.arange(start, stop, dtype=np.int64)
    train = given["train"]
    test = given["test"]
    if not isinstance(validation, float):
        if len(given["validation"]):
            return _whole(prepared, Split(train, given["validation"], test))
        if len(test):
            return _whole(prepared, Split(train, test, none, "test"))
        if validation == "given":
            raise UserError(
                "a source with a validation or test set",
                f'`validation = "given"` for {prepared.path}, which has neither',
                "Give a share such as `validation = 0.2`, or add a folder val/.",
            )
    all_rows = np.arange(prepared.count, dtype=np.int64)
    # Whatever the share, the source's test set is never trained on.
    rows = np.setdiff1d(all_rows, test)
    held = hold_out(prepared, rows, validation, seed)
    rest = np.setdiff1d(rows, held)
    return _whole(prepared, Split(rest, held, test))


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
    stored: dict[str, Any] = {
        "schema_version": SPLIT_SCHEMA,
        "quality_split": split.quality_split,
        "seed": seed,
        "fingerprint": prepared.fingerprint,
    }
    for side in SIDES:
        stored[side] = getattr(split, side).tolist()
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
    count = len(split.train) + len(split.validation) + len(split.test)
    if count != prepared.count:
        return None
    return split


def counts(prepared: Prepared, split: Split) -> list[str]:
    """Describe each side with samples, "train" first: its samples, groups, and samples by class."""
    sides = []
    for side in SIDES:
        rows = getattr(split, side)
        if not len(rows):
            continue
        words = f"{side}: {len(rows)}"
        if prepared.groups is not None:
            groups = {prepared.groups[row] for row in rows.tolist()}
            words += f" in {len(groups)} groups"
        if prepared.class_of_each is not None:
            labels = prepared.class_of_each[rows]
            samples_of = np.bincount(labels, minlength=prepared.classes)
            by_class = zip(prepared.class_names, samples_of.tolist(), strict=True)
            listed = [f"{name} {count}" for name, count in by_class]
            words += f" ({', '.join(listed)})"
        sides.append(words)
    return sides


def untrained(prepared: Prepared, split: Split) -> list[str]:
    """Return the names of the classes without a training sample."""
    if prepared.class_of_each is None:
        return []
    trained = set(prepared.class_of_each[split.train].tolist())
    missing = []
    for index, name in enumerate(prepared.class_names):
        if index not in trained:
            missing.append(name)
    return missing


def _file(prepared: Prepared, validation: HeldOut, seed: int) -> Path:
    name = "default"
    if validation is not None:
        name = str(validation)
    return prepared.path / f"split-{name}-{seed}.json"


def _whole(prepared: Prepared, split: Split) -> Split:
    """Return the split unchanged; refuse one that divides a group, as the source's own split may."""
    if prepared.groups is None:
        return split
    side_of: dict[str, str] = {}
    for side in SIDES:
        for row in getattr(split, side).tolist():
            group = prepared.groups[row]
            other = side_of.setdefault(group, side)
            if other != side:
                raise UserError(
                    "each group of samples on one side of the source's split",
                    f"{group!r} in {other} and in {side} ({prepared.names[row]}) of {prepared.path}",
                    "Move its samples to one side, or group them in another way.",
                )
    return split
