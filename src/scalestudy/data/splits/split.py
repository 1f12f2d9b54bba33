"""Training, validation and test rows: chosen once by a seed, disjoint, and stored."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from scalestudy.data.loading.order import Indices
from scalestudy.data.splits.held_out import Fold, held_out
from scalestudy.data.store.prepared import Prepared
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

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
        """Read a stored split.

        Raises:
            UserError: If the file is missing or damaged.
        """
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
    held = held_out(prepared, rows, validation, seed)
    return _whole(prepared, Split(np.setdiff1d(rows, held), held, test))


def stored_split(prepared: Prepared, validation: HeldOut, seed: int) -> Split:
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
    """Return the split stored by `stored_split`, or None if it is missing, damaged or of other rows.

    `stored_split` makes the same split again.
    """
    try:
        split = Split.load(_file(prepared, validation, seed))
    except UserError:
        return None
    return split if len(split.train) + len(split.validation) + len(split.test) == prepared.count else None


@dataclass(frozen=True)
class SideCounts:
    """One side of a split: numbers of samples, of groups and of samples by class; None without these."""

    side: str
    samples: int
    groups: int | None
    classes: dict[str, int] | None

    def __str__(self) -> str:
        groups = "" if self.groups is None else f" in {self.groups} groups"
        classes = ", ".join(f"{name} {count}" for name, count in (self.classes or {}).items())
        return f"{self.side}: {self.samples}{groups}{f' ({classes})' if classes else ''}"


def counts(prepared: Prepared, split: Split) -> list[SideCounts]:
    """Return the counts of each side with samples, "train" first."""
    sides = []
    for side in SIDES:
        rows = getattr(split, side)
        if not len(rows):
            continue
        groups = None if prepared.groups is None else len({prepared.groups[row] for row in rows.tolist()})
        classes = None
        if prepared.class_of_each is not None:
            samples_of = np.bincount(prepared.class_of_each[rows], minlength=prepared.classes)
            classes = dict(zip(prepared.class_names, samples_of.tolist(), strict=True))
        sides.append(SideCounts(side, len(rows), groups, classes))
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
