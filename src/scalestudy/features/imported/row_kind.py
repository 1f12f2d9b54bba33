"""Tell whether a row of an imported file is a run or an epoch of a run."""

from collections.abc import Mapping, Sequence

from scalestudy.features.imported.cells import (
    ParsedRow,
    by_point_and_cells,
    cells_of,
    of_several_rows,
    values_in,
)
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
    # By texts and swept values as well, which never count epochs.
    groups = by_point_and_cells(rows, texts_of(rows, unused))
    several = of_several_rows(groups)
    if _are_counted(columns, several):
        return "epoch"
    if not several:
        return "run"
    of_one_run = [_is_one_run(group, unused) for group in several]
    if all(of_one_run):
        return "epoch"
    history = bool(columns.keys() & set(OF_EPOCHS))
    # Repeats would have total times of their own.
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
    # Rows that state a seed are runs, however many there are.
    if "seed" in columns:
        return False
    timed = "epoch_seconds" in columns
    many = max(map(len, several)) > MOST_REPEATS
    if _is_log(columns):
        return many or history or not _total_differs(several)
    if many and (history or timed):
        return True
    # Repeats have qualities of their own, and only the epochs of one run share that of its final model.
    equal = all(_is_constant(group, "quality") for group in several)
    return timed and equal and not _total_differs(several)


def _are_counted(
    columns: Mapping[str, ImportedColumn], several: Sequence[Sequence[ParsedRow]]
) -> bool:
    """Whether a column counts epochs, be it called `epoch` or `epochs`."""
    if "epoch" in columns:
        # In a table of runs, `epoch` is often how long each trained: 15 in every row.
        return _is_log(columns) or any(_differs(group, "epoch") for group in several)
    for group in several:
        if not counts_rows(values_in(group, "epochs")):
            return False
    return bool(several)


def texts_of(rows: Sequence[ParsedRow], unused: Sequence[str]) -> list[str]:
    """Return the columns without a role that tell runs with a row for each epoch apart."""
    found = []
    for name in unused:
        cells = cells_of(rows, name)
        if recurring_texts(cells) or (
            is_swept_by_name(name) and len(set(map(str, cells))) > 1
        ):
            found.append(name)
    return found


def _differs(group: Sequence[ParsedRow], role: str) -> bool:
    return len(set(values_in(group, role))) > 1


def _is_constant(group: Sequence[ParsedRow], role: str) -> bool:
    values = set(values_in(group, role))
    return len(values) == 1 and None not in values


def _is_one_run(group: Sequence[ParsedRow], unused: Sequence[str]) -> bool:
    """Whether rows are the epochs of one run: what belongs to the whole run is the same in all of them."""
    if not _differs(group, "epoch_seconds"):
        return False
    if _is_constant(group, "training_seconds"):
        return True
    # Two or three repeats may well have one accuracy; that of four and more is one measurement.
    if len(group) < MANY or not _is_constant(group, "quality"):
        return False
    if "training_seconds" in group[0].values:
        return False
    # Settings such as the CPUs of a task differ without counting the rows.
    differing = 0
    for name in unused:
        cells = list(map(str, cells_of(group, name)))
        if counts_rows(cells):
            return True
        if len(set(cells)) > 1:
            differing += 1
    return differing == 0
