"""Read the runs of one file: a table with a row for each run, or logs with a row for each epoch."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.analysis.runs import Run
from scalestudy.features.imported.cells import POSITIVE, ParsedRow, by_point, parse_rows
from scalestudy.features.imported.columns import (
    OF_EPOCHS,
    OF_RUNS,
    TIMES,
    UNITS,
    ImportedColumn,
    ImportOptions,
    RowKind,
    find_columns,
    find_quality,
    is_of_validation,
    listed,
    metric_name,
)
from scalestudy.features.imported.file_rows import (
    FileRows,
    printable_name,
    read_file_rows,
)
from scalestudy.features.imported.row_kind import kind_of_rows, texts_of
from scalestudy.features.imported.run_name import run_name
from scalestudy.features.imported.run_of_rows import (
    FileFacts,
    TimesOf,
    run_of_epochs,
    run_of_row,
    times_of_epochs,
)
from scalestudy.features.imported.unused_columns import (
    separating,
    set_swept,
    sweep_roles,
)
from scalestudy.util.errors import UserError

MEASURED = (*POSITIVE, "quality")
"""Roles of which a run needs one."""
MOST_COLUMNS = 12
"""Maximum number of unused columns that are named."""
_MEANINGS: dict[tuple[str, TimesOf | None], str] = {
    ("training_seconds", "epoch"): "the time of an epoch",
    ("training_seconds", "start"): "the time since the start",
}
"""What a time of training is in rows of epochs, where it is not that of the whole run."""


class Reading(NamedTuple):
    """What was read from a file.

    Attributes:
        runs: Its runs.
        remarks: Sentences on how it was understood.
        skipped: Rows that were left out ("line 7: …").
        throughput: Column of the throughput, unless the user named it; "" otherwise.
        per_worker: Whether that is the throughput of one worker.
    """

    runs: tuple[Run, ...]
    remarks: tuple[str, ...]
    skipped: tuple[str, ...]
    throughput: str = ""
    per_worker: bool = False


def read_table(path: Path, label: str, options: ImportOptions) -> Reading:
    """Read the runs of a CSV or JSON file.

    Args:
        path: The file.
        label: Its name in messages and tables.
        options: The user's options.

    Raises:
        UserError: A required column is missing or ambiguous, no row can be read, or it is not clear what a
            row is.
    """
    found = read_file_rows(path)
    file = printable_name(path.name)
    columns = find_columns(found.header, options.columns)
    metric, columns = find_quality(found.header, columns, options)
    rows, skipped = parse_rows(found.rows, columns, {})
    if not rows:
        raise UserError(
            "a row with numbers",
            f"none in {file}: {skipped[0]}",
            "Correct its rows.",
        )
    # A column without a role may count epochs, whatever it is called.
    kind = kind_of_rows(rows, columns, _unused(found, columns), options.row, file)
    if kind == "run":
        columns = _columns_of_runs(columns, rows)
    else:
        # In rows of epochs, nothing says whether these are of the epoch or since the start.
        columns = _without(columns, OF_RUNS)
    stated = _complete(rows, columns, kind, path, options)
    measured = set(MEASURED)
    if kind == "epoch":
        # Logs of Keras's `CSVLogger` hold losses and metrics, but no times.
        measured.add("loss")
    if not columns.keys() & measured:
        wanted = f"a column of {file} for training_seconds, throughput or quality"
        raise UserError(
            wanted,
            listed(found.header),
            "Name the column: --column training_seconds=NAME.",
        )
    rows, without = _with_numbers(rows, kind)
    if not rows:
        raise UserError(
            "a row with numbers",
            f"none in {file}: {without[0]}",
            "Correct its rows.",
        )
    unused = _unused(found, columns)
    facts = FileFacts(label, metric, options.better)
    times: TimesOf | None = None
    if kind == "run":
        apart = separating(rows, unused)
        set_swept(rows, apart)
        # After `set_swept`: only what the other columns leave unexplained is swept.
        for role in sweep_roles(rows):
            apart.append(columns[role].name)
        runs = [run_of_row(facts, row) for row in rows]
    else:
        # Numbers differ from epoch to epoch in any further column, so only texts can tell runs apart.
        apart = texts_of(rows, unused)
        set_swept(rows, apart)
        groups = _runs_of_epochs(rows, columns, file)
        column = ""
        if "training_seconds" in columns:
            column = columns["training_seconds"].name
        times = times_of_epochs(groups, file, column)
        runs = [run_of_epochs(facts, group, times) for group in groups]
    remarks = []
    if found.form:
        remarks.append(found.form)
    remarks.append(_understood(columns, kind, times))
    remarks += _remarks(columns, kind, stated, apart)
    remarks += _not_used([name for name in unused if name not in apart])
    return Reading(
        tuple(runs),
        tuple(remarks),
        (*found.malformed, *skipped, *without),
        _doubtful_throughput(columns, options),
        "throughput_per_worker" in columns,
    )


def _doubtful_throughput(
    columns: Mapping[str, ImportedColumn], options: ImportOptions
) -> str:
    """Return the column of the throughput, "" if there is none, or no doubt whose it is."""
    if options.columns.keys() & {"throughput", "throughput_per_worker"}:
        return ""
    rate = columns.get("throughput") or columns.get("throughput_per_worker")
    if rate is None:
        return ""
    return rate.name


def _unused(found: FileRows, columns: Mapping[str, ImportedColumn]) -> list[str]:
    used = {column.name for column in columns.values()}
    return [name for name in found.header if name not in used]


def _columns_of_runs(
    columns: Mapping[str, ImportedColumn], rows: Sequence[ParsedRow]
) -> dict[str, ImportedColumn]:
    """Return the columns of a table of runs: a column `epoch` is the number of epochs that a run trained."""
    if "epoch" in columns and "epochs" not in columns:
        columns = {**columns, "epochs": columns["epoch"]}
        for row in rows:
            if row.values.get("epoch", 0) > 0:
                row.values["epochs"] = row.values["epoch"]
    return _without(columns, OF_EPOCHS)


def _without(
    columns: Mapping[str, ImportedColumn], roles: Sequence[str]
) -> dict[str, ImportedColumn]:
    return {role: column for role, column in columns.items() if role not in roles}


def _complete(
    rows: Sequence[ParsedRow],
    columns: Mapping[str, ImportedColumn],
    kind: RowKind,
    path: Path,
    options: ImportOptions,
) -> list[str]:
    """Add what the file's name or the options state, and the throughput of all workers.

    Returns:
        The roles whose values come from the file's name.

    Raises:
        UserError: The number of workers is unknown, or stated twice.
    """
    # `table_3.csv` is the third table, but `log_3.csv` the log of three workers.
    name = run_name(path, bare=kind == "epoch")
    file = printable_name(path.name)
    defaults: dict[str, Any] = {
        "strategy": options.strategy,
        "workers": options.workers,
    }
    stated: dict[str, Any] = {}
    for role in ("workers", "strategy", "seed"):
        value = getattr(name, role)
        if role not in columns and value is not None:
            stated[role] = value
    if "workers" in stated and options.workers not in (None, name.workers):
        seen = f"--workers {options.workers}, and {name.workers} in the name of {file}"
        raise UserError(
            "one number of workers for a file",
            seen,
            "Rename the file, or leave out --workers.",
        )
    # What a file's name states goes before the options, which are for files whose names state nothing.
    defaults |= stated
    if "workers" not in columns and defaults["workers"] is None:
        if kind == "epoch":
            wanted = "a log whose name states its number of workers, such as log_8.csv or run-w8/"
            raise UserError(
                wanted,
                file,
                "Rename it, or give one number for all: --workers N.",
            )
        seen = listed(list(rows[0].row.cells))
        action = (
            "Name it: --column workers=NAME, or say the number for all: --workers N."
        )
        raise UserError(f"a column of {file} for workers", seen, action)
    for row in rows:
        values = row.values
        for role, value in defaults.items():
            if value is not None:
                # A row's own cell goes before what holds for the whole file.
                values.setdefault(role, value)
        if "throughput_per_worker" in values and "workers" in values:
            values["throughput"] = values["throughput_per_worker"] * values["workers"]
    # Without it, weak scaling shows as times that do not fall: the rate tells that each worker did the whole work.
    if _has_rate_of_run(columns):
        for row in rows:
            values = row.values
            if values.keys() >= {"samples_processed", "training_seconds"}:
                values["throughput"] = (
                    values["samples_processed"] / values["training_seconds"]
                )
    return list(stated)


def _has_rate_of_run(columns: Mapping[str, ImportedColumn]) -> bool:
    """Whether throughput follows from the samples of a run and its time, as no column states it."""
    stated = columns.keys() & {"throughput", "throughput_per_worker"}
    return not stated and columns.keys() >= {"samples_processed", "training_seconds"}


def _with_numbers(
    rows: Sequence[ParsedRow], kind: RowKind
) -> tuple[list[ParsedRow], list[str]]:
    """Return the rows of which something is known, and why the others were left out."""
    kept = []
    skipped = []
    for row in rows:
        place = row.row.place
        if "workers" not in row.values:
            skipped.append(f"{place}: it has no number of workers")
        elif kind == "run" and not row.values.keys() & set(MEASURED):
            skipped.append(f"{place}: it has no time, throughput or quality")
        else:
            kept.append(row)
    return kept, skipped


def _runs_of_epochs(
    rows: Sequence[ParsedRow],
    columns: Mapping[str, ImportedColumn],
    file: str,
) -> list[list[ParsedRow]]:
    """Group rows of epochs by run.

    Raises:
        UserError: An epoch of a run occurs twice.
    """
    groups = by_point(rows)
    # Logs also call the number of the epoch `epochs`, which is that of the run in a table of runs.
    counter = "epochs"
    if "epoch" in columns:
        counter = "epoch"
    for group in groups:
        counted = []
        for row in group:
            if counter in columns and counter in row.values:
                counted.append(row.values[counter])
        if len(set(counted)) < len(counted):
            wanted = f"each epoch of a run once in {file}"
            action = "Tell runs apart by a column `seed`, or write a file for each."
            raise UserError(wanted, "an epoch that occurs twice", action)
    return groups


def _understood(
    columns: Mapping[str, ImportedColumn],
    kind: RowKind,
    times: TimesOf | None,
) -> str:
    """Say what a row is, and each column that is used, with its meaning if the name does not say it."""
    parts = []
    for role, column in columns.items():
        part = printable_name(column.name)
        remarks = []
        meaning = _MEANINGS.get((role, times), role)
        if meaning != column.name:
            remarks.append(meaning)
        if role in TIMES and column.factor == 1 and not _states_unit(column.name):
            remarks.append("in seconds")
        if remarks:
            part += f" ({', '.join(remarks)})"
        parts.append(part)
    used = f"Columns used: {', '.join(parts)}."
    if kind == "epoch":
        return f"An epoch is a row. {used}"
    return used


def _states_unit(name: str) -> bool:
    lower = name.lower()
    if "second" in lower:
        return True
    words = re.sub(r"[()\[\]]", " ", lower).split()
    return any(word in UNITS for word in words)


def _remarks(
    columns: Mapping[str, ImportedColumn],
    kind: RowKind,
    stated: Sequence[str],
    apart: Sequence[str],
) -> Iterator[str]:
    """Yield sentences on what was inferred."""
    if stated:
        yield f"From its path: {', '.join(stated)}."
    if "throughput_per_worker" in columns:
        name = printable_name(columns["throughput_per_worker"].name)
        yield f"Throughput is {name} times the workers."
    for role in ("throughput", "throughput_per_worker"):
        # The report's columns are called samples per second, whatever a model reads.
        if role in columns and "token" in columns[role].name.lower():
            yield "Its samples/s are tokens per second."
    if _has_rate_of_run(columns):
        samples = printable_name(columns["samples_processed"].name)
        seconds = printable_name(columns["training_seconds"].name)
        yield f"Throughput is {samples} by {seconds}."
    if apart:
        names = ", ".join(map(printable_name, apart))
        yield f"Rows that differ in {names} are separate rows."
    if kind == "epoch":
        yield from _remarks_on_log(columns)


def _remarks_on_log(columns: Mapping[str, ImportedColumn]) -> Iterator[str]:
    """Yield sentences on what rows of epochs lack, such as those of Keras's `CSVLogger`."""
    if not columns.keys() & {*TIMES, "throughput", "throughput_per_worker"}:
        yield "No column holds times, so there is no speed-up."
    quality = columns.get("quality")
    if quality is None:
        return
    # Only a log of epochs without the time of the run is like that of a `CSVLogger`, which has both metrics.
    if "training_seconds" not in columns and not is_of_validation(quality.name):
        yield f"{printable_name(quality.name)} may be that of the training data: its name does not say."
    if metric_name(quality.name) == "loss":
        yield "No other metric is there, so the validation loss is the quality."


def _not_used(names: Sequence[str]) -> Iterator[str]:
    # An index of pandas has no name, and nobody misses it.
    named = [printable_name(name) for name in names if name.strip()]
    if named:
        shown = ", ".join(named[:MOST_COLUMNS])
        rest = ""
        if len(named) > MOST_COLUMNS:
            rest = f" and {len(named) - MOST_COLUMNS} more"
        yield f"Not used: {shown}{rest}."
