"""Tell whether a row of an imported file is a run or an epoch of a run."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from scalestudy.features.imported.cells import ParsedRow
from scalestudy.features.imported.columns import OF_EPOCHS, ImportedColumn, RowKind
from scalestudy.features.imported.unused_columns import (
    counts_rows,
    is_swept_by_name,
    recurring_texts,
)
from scalestudy.util.errors import UserError

MANY = 4
"""Rows of one point from which an equal quality beside changing epoch times is that of one run."""
MOST_REPEATS = 8
"""Rows of one point above which they are hardly repeats."""


def kind_of_rows(
    rows: Sequence[ParsedRow],
    columns: Mapping[str, ImportedColumn],
    unused: Sequence[str],
    asked: RowKind | None,
    file: str,
) -> RowKind:
    """Return what a row is; `unused` are the columns without a role, and `file` names the file in messages.

    Rows are epochs if a column counts them, or if a time or quality of the whole run stays the same beside a
    changing time of an epoch, whatever their index is called.

    Raises:
        UserError: Both readings are likely.
    """
    if asked:
        return asked
    groups = _coarse_groups(rows, unused)
    several = [group for group in groups if len(group) > 1]
    of_one_run = [_is_one_run(group, unused) for group in several]
    if _are_counted(columns, groups) or (several and all(of_one_run)):
        return "epoch"
    if not several:
        return "run"
    history = bool(columns.keys() & set(OF_EPOCHS))
    if _is_log(columns) and history and not _total_differs(several):
        return "epoch"
    if any(of_one_run) or _is_doubtful(several, columns, history=history):
        most = max(map(len, several))
        seen = f"{file}, where {most} rows are of one point and nothing says which they are"
        wanted = "a file with a row for each run, or for each epoch"
        action = "Say which: --row run, or --row epoch."
        if "workers" not in columns:
            action = (
                "Name the column with the number of workers: --column workers=NAME. If there is none, say "
                "which: --row run, or --row epoch."
            )
        raise UserError(wanted, seen, action)
    return "run"


def _is_log(columns: Mapping[str, ImportedColumn]) -> bool:
    """Whether no column tells runs apart."""
    return "workers" not in columns and "seed" not in columns


def _total_differs(groups: Sequence[Sequence[ParsedRow]]) -> bool:
    return any(_differs(group, "training_seconds") for group in groups)


def _is_doubtful(
    several: Sequence[Sequence[ParsedRow]],
    columns: Mapping[str, ImportedColumn],
    *,
    history: bool,
) -> bool:
    """Whether rows of one point may be epochs as well as repeats."""
    if "seed" in columns:
        return False
    timed, many = "epoch_seconds" in columns, max(map(len, several)) > MOST_REPEATS
    if _is_log(columns):
        return many or history or not _total_differs(several)
    if many and (history or timed):
        return True
    equal = all(_is_constant(group, "quality") for group in several)
    return timed and equal and not _total_differs(several)


def _are_counted(
    columns: Mapping[str, ImportedColumn], groups: Sequence[Sequence[ParsedRow]]
) -> bool:
    """Whether a column counts epochs, be it called `epoch` or `epochs`."""
    several = [group for group in groups if len(group) > 1]
    if "epoch" in columns:
        return _is_log(columns) or any(_differs(group, "epoch") for group in several)
    for group in several:
        if not counts_rows([row.values.get("epochs") for row in group]):
            return False
    return bool(several)


def texts_of(rows: Sequence[ParsedRow], unused: Sequence[str]) -> list[str]:
    """Return the columns without a role that tell runs with a row for each epoch apart."""
    found = []
    for name in unused:
        cells = [row.cell(name) for row in rows]
        differs = len(set(map(str, cells))) > 1
        if recurring_texts(cells) or (is_swept_by_name(name) and differs):
            found.append(name)
    return found


def _coarse_groups(
    rows: Sequence[ParsedRow], unused: Sequence[str]
) -> list[list[ParsedRow]]:
    """Group rows by point, and by texts and swept values, which never count epochs."""
    apart = texts_of(rows, unused)
    groups: dict[tuple[Any, ...], list[ParsedRow]] = defaultdict(list)
    for row in rows:
        settings = [str(row.cell(name)) for name in apart]
        groups[*row.point, *settings].append(row)
    return list(groups.values())


def _values(group: Sequence[ParsedRow], role: str) -> set[Any]:
    return {row.values.get(role) for row in group}


def _differs(group: Sequence[ParsedRow], role: str) -> bool:
    return len(_values(group, role)) > 1


def _is_constant(group: Sequence[ParsedRow], role: str) -> bool:
    values = _values(group, role)
    return len(values) == 1 and None not in values


def _is_one_run(group: Sequence[ParsedRow], unused: Sequence[str]) -> bool:
    """Whether rows are the epochs of one run: what belongs to the whole run is the same in all of them."""
    if not _differs(group, "epoch_seconds"):
        return False
    if _is_constant(group, "training_seconds"):
        return True
    if (
        len(group) < MANY
        or not _is_constant(group, "quality")
        or "training_seconds" in group[0].values
    ):
        return False
    # Settings such as the CPUs of a task differ without counting the rows.
    differing = 0
    for name in unused:
        cells = [str(row.cell(name)) for row in group]
        if counts_rows(cells):
            return True
        if len(set(cells)) > 1:
            differing += 1
    return differing == 0
