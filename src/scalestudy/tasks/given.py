"""What `read(data)` of a task file may give, brought into one form: parts of samples."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from scalestudy.data.columns import leaves, map_columns
from scalestudy.data.store.write_custom import SPLITS, Part
from scalestudy.util.errors import UserError

AT_ONCE = 4096
"""Samples of an array that are written at once."""
FORMS = (
    "(inputs, targets) or (inputs, targets, groups) as arrays or dictionaries of arrays, samples of these "
    'from a generator or a tf.data.Dataset, or a dictionary of such with "train" and "validation"'
)


def parts_of(given: Any) -> Iterator[Part]:
    """The parts of what was given, in the order train, validation, test.

    Raises:
        UserError: If it is of another form, or its columns have different numbers of samples.
    """
    if not _is_split(given):
        yield from _parts(given, None)
        return
    unknown = given.keys() - set(SPLITS)
    if unknown or (not {"train", "validation"} <= given.keys() and not {"train", "test"} <= given.keys()):
        raise UserError(
            'a dictionary with "train" and "validation" (or "test") from read(data)',
            f"{', '.join(map(repr, given))}",
            'Name its parts "train", "validation" and "test".',
        )
    for split in SPLITS:
        if split in given:
            yield from _parts(given[split], split)


def length_of(given: Any) -> int | None:
    """Number of samples, where it is known ahead."""
    if _is_split(given):
        lengths = [length_of(part) for part in given.values()]
        known = [length for length in lengths if length is not None]
        return sum(known) if len(known) == len(lengths) else None
    if isinstance(given, tuple):
        return len(leaves(given[0])[0]) if given and _sized(given[0]) else None
    try:
        return len(given)
    except TypeError:  # a generator, or a tf.data.Dataset that does not know
        return None


def _is_split(given: Any) -> bool:
    return isinstance(given, Mapping) and bool(given.keys() & set(SPLITS))


def _parts(given: Any, split: str | None) -> Iterator[Part]:
    if isinstance(given, tuple):
        yield from _of_arrays(given, split)
        return
    if hasattr(given, "as_numpy_iterator"):
        given = given.as_numpy_iterator()
    if not isinstance(given, Iterable) or isinstance(given, Mapping | str | np.ndarray):
        raise _other(given)
    for sample in given:
        if not isinstance(sample, tuple) or len(sample) not in (2, 3):
            raise _other(sample, "a sample that is ")
        inputs, targets = (map_columns(lambda value: [value], side) for side in sample[:2])
        yield Part(split, inputs, targets, [str(sample[2])] if len(sample) == 3 else None, 1)


def _of_arrays(given: tuple[Any, ...], split: str | None) -> Iterator[Part]:
    if len(given) not in (2, 3) or not all(map(_sized, given)):
        raise _other(given)
    lengths = {
        f"{side}{'' if name is None else f' {name!r}'}": len(column)
        for side, columns in zip(("inputs", "targets", "groups"), given, strict=False)
        for name, column in (columns.items() if isinstance(columns, Mapping) else [(None, columns)])
    }
    count = next(iter(lengths.values()))
    if set(lengths.values()) != {count}:
        raise UserError(
            "as many samples in all inputs and targets of read(data)",
            ", ".join(f"{length} {name}" for name, length in lengths.items()),
            "Give one entry a sample along the first axis of each.",
        )
    columns = [map_columns(_array, side) for side in given[:2]]
    groups = [str(group) for group in given[2]] if len(given) == 3 else None
    for start in range(0, count, AT_ONCE):
        stop = min(start + AT_ONCE, count)
        inputs, targets = (map_columns(lambda column: column[start:stop], side) for side in columns)  # noqa: B023
        yield Part(split, inputs, targets, groups and groups[start:stop], stop - start)


def _sized(given: Any) -> bool:
    return all(hasattr(column, "__len__") and not isinstance(column, str) for column in leaves(given))


def _array(column: Any) -> Any:
    """Lists stay lists, for sequences; a data frame's column and a tensor become arrays."""
    return column if isinstance(column, list | tuple) else np.asarray(column)


def _other(given: Any, what: str = "") -> UserError:
    kind = type(given).__name__
    more = f" of {len(given)}" if isinstance(given, tuple) else ""
    return UserError(f"{FORMS}, from read(data)", f"{what}{kind}{more}", "Return one of these.")
