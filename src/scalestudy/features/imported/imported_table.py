"""Read tables (CSV, JSON) with one row per run or per epoch, and logs of one run."""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.analysis.runs import Run, RunSource
from scalestudy.config.objectives import known
from scalestudy.features.imported.imported_columns import (
    TIMES,
    ImportedColumn,
    ImportOptions,
    find_columns,
    join_words,
    metric_name,
    name_columns,
    normalise,
    quality_column,
    run_of_log,
    shown,
)
from scalestudy.plugins.strategies import DEFAULT
from scalestudy.store.records import EpochOutcome, Outcome
from scalestudy.util.errors import UserError

UNNAMED = "unnamed"
"""Strategy of runs whose file states none."""
PUBLISHED = {"time_per_epoch", "loss", "lr", "training_time", "test_time"}
"""Columns of a published study. Its logs of TensorFlow's own strategy (`log_8.csv`) do not name it."""
TEXTS = ("strategy", "metric", "better", "oversubscribed")
BATCHES = ("batch_size", "batch")
"""Columns that do not say whether they mean a worker's batch or all workers'; a row is told apart by them."""
COUNTS = ("workers", "epochs", "per_worker_batch", "global_batch")
LEAST, MOST = 1e-9, 1e15
"""Times and throughputs outside this range are mistakes and would overflow in ratios and squares."""


class ImportedRow(NamedTuple):
    """A row of a table: its line number, if the file has lines, and its cells by column."""

    line: int | None
    cells: Mapping[str, Any]


class Reading(NamedTuple):
    """Runs read from a file, sentences on how it was understood, and skipped rows ("line 7: …")."""

    runs: tuple[Run, ...]
    remarks: tuple[str, ...]
    skipped: tuple[str, ...]


class _Parsed(NamedTuple):
    """A parsed row: its number among all rows, its line, its values by role, and its swept values."""

    number: int
    line: int | None
    values: dict[str, Any]
    swept: dict[str, Any]


def _csv_rows(path: Path, skipped: list[str]) -> Iterator[ImportedRow]:
    """Yield the rows of a CSV file. Lines with more or fewer cells than the header are added to `skipped`."""
    name, header = shown(path.name), list[str]()
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            lines = csv.reader(stream)
            for line in lines:
                cells, number = [cell.strip() for cell in line], lines.line_num
                if not any(cells) or cells[0].startswith("#"):
                    continue
                if not header:
                    header = cells
                    _refuse_repeated([cell for cell in cells if cell], path)
                elif len(cells) == len(header):
                    yield ImportedRow(number, dict(zip(header, cells, strict=True)))
                else:
                    skipped.append(f"line {number}: {len(cells)} cells where the header has {len(header)}")
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError("a CSV file in UTF-8", f"{name}: {shown(str(error))}", "Save it as UTF-8.") from error


def _refuse_repeated(names: Sequence[str], path: Path) -> None:
    """Raise `UserError` if two columns have the same name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        seen = f"{', '.join(map(shown, repeated[:5]))} twice in {shown(path.name)}"
        raise UserError("columns with different names", seen, "Rename a column.")


def _json_rows(path: Path, _: list[str]) -> Iterator[ImportedRow]:
    """Yield the rows of a JSON list of objects, or of our own table.json."""

    def cells(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_repeated([name for name, _ in pairs], path)
        return dict(pairs)

    try:
        document = json.loads(path.read_bytes(), object_pairs_hook=cells)
    except (ValueError, RecursionError) as error:
        seen = f"{shown(path.name)}: {shown(str(error))}"
        raise UserError("a JSON document", seen, "Correct the file.") from error
    rows = document.get("rows") if isinstance(document, dict) else document
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        wanted = "a JSON list of objects, one for each row"
        raise UserError(wanted, shown(path.name), "Write it in this form, or as CSV.")
    for row in rows:
        yield ImportedRow(None, row)


_FORMS = {".csv": _csv_rows, ".json": _json_rows}
NUMBERS = f"a file of numbers: {', '.join(_FORMS)}"


def read_table(path: Path, label: str, options: ImportOptions) -> Reading:
    """Read the runs of a CSV or JSON file: one per row, or one epoch per row if there is a column `epoch`.

    Rows of epochs without a column for workers are the log of one run, and the file name describes that run.

    Args:
        path: The file.
        label: Its name in messages and tables.
        options: The user's options.

    Raises:
        UserError: A required column is missing or ambiguous, or no row can be read.
    """
    if path.suffix.lower() not in _FORMS:
        action = "Write a CSV file with the columns strategy, workers, training_seconds."
        raise UserError(NUMBERS, f"{label}, which is none of these", action)
    malformed: list[str] = []
    rows = list(_FORMS[path.suffix.lower()](path, malformed))
    if not rows:
        raise UserError("a table with rows", f"none in {shown(path.name)}", "Name another file.")
    header = list(dict.fromkeys(name for row in rows for name in row.cells))
    columns = find_columns(header, options.columns)
    named = options.metric is not None and name_columns(header, options.metric)
    if "quality" in columns and not named:
        metric = options.metric or metric_name(columns["quality"].name)
        if options.metric and not (known(metric).better or options.better or "better" in columns):
            expected = f"a column {shown(metric)!r}, or a metric that is known by name, for `quality`"
            raise UserError(
                expected, join_words(header), "Correct --metric, or add --better higher or --better lower."
            )
    else:
        quality = quality_column(header, options.metric)
        columns |= {"quality": ImportedColumn(quality)} if quality else {}
        metric = metric_name(quality) if quality else ""
    timed = "epoch_seconds" in columns and columns.keys() & {"loss", "learning_rate"}
    is_log = "workers" not in columns and bool("epoch" in columns or timed)
    by_epoch = is_log or "epoch" in columns
    defaults: dict[str, Any] = {
        "strategy": options.strategy,
        "workers": options.workers,
        "metric": metric,
        "better": options.better,
    }
    if is_log:
        name = run_of_log(path, options)
        native = DEFAULT if {normalise(column) for column in header} >= PUBLISHED else None
        defaults |= name._asdict() | {"strategy": name.strategy or native}
    file = shown(path.name)
    if "workers" not in columns and defaults["workers"] is None:
        action = "Name it: --column workers=NAME, or say the number for all: --workers N."
        raise UserError(f"a column of {file} for workers", join_words(header), action)
    if not columns.keys() & {*TIMES, "throughput", "quality", "loss"}:
        wanted = f"a column of {file} for training_seconds, throughput or quality"
        raise UserError(wanted, join_words(header), "Name the column: --column training_seconds=NAME.")
    used = {column.name for column in columns.values()}
    swept = [
        name for name in header if name not in used and ("." in name.strip(".") or normalise(name) in BATCHES)
    ]
    parsed, skipped = _parse(rows, columns, swept, defaults)
    _sweep_batches(parsed)
    if not parsed:
        raise UserError("a row with numbers", f"none in {file}: {skipped[0]}", "Correct its rows.")
    if by_epoch:
        at_end = "quality" in columns and normalise(columns["quality"].name) == metric
        runs = [_run_of_epochs(label, group, at_end) for group in _by_run(path, parsed)]
    else:
        runs = [_run(label, [row], row.values) for row in parsed]
    remarks = _remarks(header, columns, swept, by_epoch)
    return Reading(tuple(runs), tuple(remarks), (*malformed, *skipped))


def _parse(
    rows: Sequence[ImportedRow],
    columns: Mapping[str, ImportedColumn],
    swept: Sequence[str],
    defaults: Mapping[str, Any],
) -> tuple[list[_Parsed], list[str]]:
    """Return the rows with valid cells, and why the others were skipped."""
    parsed, skipped = [], []
    for number, row in enumerate(rows, start=1):
        values = {role: value for role, value in defaults.items() if value is not None}
        try:
            for role, column in columns.items():
                cell = row.cells.get(column.name)
                if cell is not None and str(cell).strip():
                    values[role] = _value(role, cell, column.factor)
            if "workers" not in values:
                raise ValueError("it has no number of workers")
        except ValueError as error:
            place = f"row {number}" if row.line is None else f"line {row.line}"
            skipped.append(f"{place}: {error}")
        else:
            names = {shown(name): _plain(row.cells.get(name)) for name in swept}
            parsed.append(_Parsed(number, row.line, values, names))
    return parsed, skipped


def _sweep_batches(rows: Sequence[_Parsed]) -> None:
    """Tell rows apart whose batches differ at one number of workers, where the table has no swept column."""
    for role in ("per_worker_batch", "global_batch"):
        seen: dict[object, set[object]] = defaultdict(set)
        for row in rows:
            key = json.dumps([row.values.get("strategy"), row.values["workers"], row.swept], sort_keys=True)
            seen[key].add(row.values.get(role))
        if any(len(batches) > 1 for batches in seen.values()):
            for row in rows:
                row.swept[role] = row.values.get(role)
            return


def _value(role: str, cell: Any, factor: float) -> Any:
    """Convert a cell to the type of its role. Raises `ValueError` with the reason if it is invalid."""
    text = shown(str(cell).strip())
    if role in TEXTS:
        if role == "better" and text not in ("higher", "lower"):
            raise ValueError(f"better is {text}, neither higher nor lower")
        return text
    number = _number(cell)
    if number is None:
        raise ValueError(f"{role} is {text}, which is not a number")
    if role in COUNTS or role in ("seed", "epoch"):
        if not abs(number) < 2**53 or number != int(number) or (role in COUNTS and not 0 < number < 1e12):
            raise ValueError(f"{role} is {text}, which is not a count")
        return int(number)
    number *= factor
    if role in (*TIMES, "throughput") and not LEAST < number < MOST:
        raise ValueError(f"{role} is {text}, not between {LEAST:g} and {MOST:g}")
    if role == "quality" and abs(number) > MOST:
        raise ValueError(f"quality is {text}, beyond {MOST:g}")
    return number


def _number(cell: Any) -> float | None:
    try:
        return None if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def _plain(value: Any) -> Any:
    """Return a swept value as in a study file. Our own table writes values as JSON."""
    if not isinstance(value, str):
        return value if isinstance(value, bool | int | float) or value is None else shown(str(value))
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return shown(value.strip())
    return parsed if isinstance(parsed, bool | int | float | str) else shown(value.strip())


def _by_run(path: Path, rows: Sequence[_Parsed]) -> list[list[_Parsed]]:
    """Group rows of epochs by run."""
    groups: dict[str, list[_Parsed]] = defaultdict(list)
    for row in rows:
        identity = [row.values.get(role) for role in ("strategy", "workers", "seed")]
        groups[json.dumps([*identity, row.swept], sort_keys=True)].append(row)
    for group in groups.values():
        epochs = [row.values["epoch"] for row in group if "epoch" in row.values]
        if len(set(epochs)) < len(epochs):
            action = "Tell runs apart by a column `seed`, or write a file for each."
            raise UserError(
                f"each epoch of a run once in {shown(path.name)}", "an epoch that occurs twice", action
            )
    return list(groups.values())


def _run_of_epochs(label: str, rows: Sequence[_Parsed], at_end: bool) -> Run:
    """Build a run from its epochs. With `at_end`, a quality that is equal in all rows is the final one."""
    last = rows[-1].values
    metric = last["metric"]
    constant = at_end and len(rows) > 1 and len({row.values.get("quality") for row in rows}) == 1
    epochs: list[EpochOutcome] = []
    elapsed: float | None = 0.0
    for number, row in enumerate(rows, start=1):
        values = row.values
        seconds = values.get("epoch_seconds")
        elapsed = None if elapsed is None or seconds is None else elapsed + seconds
        validation = {"loss": values["validation_loss"]} if "validation_loss" in values else {}
        if metric and "quality" in values and not constant:
            validation[metric] = values["quality"]
        epochs.append(
            EpochOutcome(
                epoch=number,
                learning_rate=values.get("learning_rate"),
                loss=values.get("loss"),
                train_seconds=seconds,
                elapsed_training_seconds=elapsed,
                validation=validation,
            )
        )
    facts = last | {"training_seconds": last.get("training_seconds", elapsed), "epochs": len(rows)}
    facts.pop("epoch_seconds", None)  # each epoch has its own
    return _run(label, rows, facts, tuple(epochs))


def _run(
    label: str, rows: Sequence[_Parsed], values: Mapping[str, Any], epochs: tuple[EpochOutcome, ...] = ()
) -> Run:
    """Build a run from these rows; `values` holds its values by role."""
    first, last = rows[0].line, rows[-1].line
    source = RunSource(label, None if first is None or last is None else (first, last))
    workers, seed, strategy = values["workers"], values.get("seed"), values.get("strategy") or UNNAMED
    name = f"{strategy}-w{workers}{'' if seed is None else f'-s{seed}'} ({source})"
    per_worker, batch = values.get("per_worker_batch"), values.get("global_batch")
    if per_worker is None and batch and batch % workers == 0:
        per_worker = batch // workers
    batch = batch or (per_worker * workers if per_worker else None)
    outcome = Outcome(
        name=name if source.lines else f"{name} #{rows[0].number}",
        strategy=strategy,
        implementation=strategy,
        workers=workers,
        seed=seed,
        swept=rows[0].swept,
        per_worker_batch=per_worker,
        global_batch=batch,
        epochs=values.get("epochs"),
        throughput=values.get("throughput"),
        training_seconds=values.get("training_seconds"),
        metric=values["metric"] if "quality" in values else "",
        better=values.get("better"),
        quality=values.get("quality"),
        oversubscribed=values.get("oversubscribed"),
    )
    return Run(outcome, epochs, source=source, epoch_seconds=values.get("epoch_seconds"))


def _remarks(
    header: Sequence[str],
    columns: Mapping[str, ImportedColumn],
    swept: Sequence[str],
    by_epoch: bool,
) -> list[str]:
    parts = [
        f"{role} from {shown(column.name)}"
        + (" (in seconds)" if role in TIMES and column.factor == 1 else "")
        for role, column in columns.items()
    ]
    remarks = [f"A row is {'an epoch' if by_epoch else 'a run'}: {', '.join(parts)}."]
    if swept:
        remarks.append(f"Swept: {', '.join(shown(name) for name in swept)}.")
    used = {column.name for column in columns.values()}
    unused = [name for name in header if name not in used and name not in swept and name.strip()]
    if unused:
        remarks.append(f"Not used: {', '.join(shown(name) for name in unused[:12])}.")
    if by_epoch and not columns.keys() & set(TIMES):
        remarks.append("No column has times, so there is no speed-up.")
    return remarks
