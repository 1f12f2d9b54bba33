"""Read tables (CSV, JSON) of other programs, with one row per run."""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.analysis.runs import Run, RunSource
from scalestudy.config.file import QualityMargin
from scalestudy.config.objectives import Better, known
from scalestudy.store.records import Outcome
from scalestudy.util.errors import UserError, printable

NAMES: dict[str, tuple[str, ...]] = {
    "strategy": ("strategy",),
    "workers": ("workers", "gpus"),
    "seed": ("seed",),
    "training_seconds": ("training_seconds", "training_time", "seconds"),
    "epoch_seconds": ("epoch_seconds", "epoch_time"),
    "throughput": ("throughput", "samples_per_second", "images_per_second"),
    "quality": ("quality",),
    "epochs": ("epochs",),
    "per_worker_batch": ("per_worker_batch",),
    "global_batch": ("global_batch",),
}
"""Normalised column names of each role; the first is the documented one."""
COUNTS = ("workers", "epochs", "per_worker_batch", "global_batch")
TIMES = ("training_seconds", "epoch_seconds")
UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
"""Units of time in seconds; a name may end in one, in brackets."""
BATCHES = ("batch_size", "batch")
"""Columns that do not say whether they mean a worker's batch or all workers'; a row is told apart by them."""
UNNAMED = "unnamed"
"""Strategy of runs whose file states none."""
LEAST, MOST = 1e-9, 1e15
"""Times and throughputs outside this range are mistakes and would overflow in ratios and squares."""
LONGEST = 60
_UNIT = re.compile(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]")
_SPLITS = ("val_", "validation_", "test_")


@dataclass(frozen=True)
class ImportOptions:
    """The user's options for reading the numbers.

    Attributes:
        columns: Column name by role, such as {"workers": "NCORES"}; takes precedence over names in the file.
        strategy: Strategy of runs whose file does not state it.
        workers: Number of workers of runs whose file does not state it.
        metric: Column of the quality, or the name of the metric in the column `quality`.
        better: Whether higher or lower quality is better, if the metric is unknown.
        margin: Accepted loss of quality; if None, the default.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    strategy: str | None = None
    workers: int | None = None
    metric: str | None = None
    better: Better | None = None
    margin: QualityMargin | None = None


def options_of(
    columns: Sequence[str] = (),
    strategy: str | None = None,
    workers: int | None = None,
    metric: str | None = None,
    better: Better | None = None,
    margin: str | None = None,
) -> ImportOptions:
    """Return `ImportOptions` from command-line values, with `columns` such as ["workers=NCORES"].

    Raises:
        UserError: A column's role or the margin is unknown.
    """
    pairs = {}
    for text in columns:
        role, _, name = text.partition("=")
        if not name or role not in NAMES:
            wanted = f"--column ROLE=NAME, with one of the roles {', '.join(NAMES)}"
            raise UserError(wanted, repr(text), "Correct --column.")
        pairs[role] = name
    try:
        accepted = None if margin is None else QualityMargin.parse(margin if "%" in margin else float(margin))
    except ValueError:
        wanted = "a number above 0 in units of the metric, or a percentage"
        raise UserError(wanted, repr(margin), "Correct --quality-margin.") from None
    return ImportOptions(pairs, strategy, workers, metric, better, accepted)


class ImportedColumn(NamedTuple):
    """A column: its name in the file, and its unit in seconds."""

    name: str
    factor: float = 1.0


def shown(text: str) -> str:
    """Return text from a file for a message: printable, and at most `LONGEST` characters before "…"."""
    clean = printable(text)
    return clean if len(clean) <= LONGEST else f"{clean[:LONGEST]}…"


def _listed(header: Sequence[str]) -> str:
    """Return the names of columns for a message."""
    return f"the columns {', '.join(shown(name) for name in header[:20])}"


def _normalise(name: str) -> str:
    """Return a name in lower case with underscores: `Time per Epoch` becomes `time_per_epoch`."""
    return re.sub(r"[^a-z0-9.]+", "_", name.strip().lower()).strip("_")


def _split_unit(name: str, role: str) -> tuple[str, str]:
    """Split off the unit of a time: `Training time [min]` becomes ("training_time", "min")."""
    with_unit = _UNIT.fullmatch(name.strip()) if role in TIMES else None
    return (_normalise(with_unit[1]), with_unit[2].strip().lower()) if with_unit else (_normalise(name), "")


def find_columns(header: Sequence[str], given: Mapping[str, str]) -> dict[str, ImportedColumn]:
    """Return the column of each role that the table has; `given` names by role take precedence.

    Raises:
        UserError: Two columns match one role, a given column is missing, or a unit is unknown.
    """
    for role, name in given.items():
        if name not in header:
            wanted = f"a column {shown(name)!r} for {role}"
            raise UserError(wanted, _listed(header), f"Correct --column {role}=NAME.")
    columns = {}
    for role, names in NAMES.items():
        free = [name for name in header if name not in given.values()]
        fitting = [given[role]] if role in given else [n for n in free if _split_unit(n, role)[0] in names]
        if len(fitting) > 1:
            both = ", ".join(repr(shown(name)) for name in fitting)
            action = f"Choose one: --column {role}={shown(fitting[0])}"
            raise UserError(f"one column for {role}", both, action)
        for name in fitting:
            unit = _split_unit(name, role)[1]
            if unit not in UNITS:
                wanted, seen = f"a time in {', '.join(filter(None, UNITS))}", f"the column {shown(name)!r}"
                raise UserError(wanted, seen, "Rename or convert that column.")
            columns[role] = ImportedColumn(name, UNITS[unit])
    return columns


def metric_name(column: str) -> str:
    """Return the metric in a column: `accuracy` for `val_accuracy`."""
    name = _normalise(column)
    return next((name.removeprefix(split) for split in _SPLITS if name.startswith(split)), name)


def quality_column(header: Sequence[str], metric: str | None) -> str | None:
    """Return the column of the quality: `metric`, else that of a known metric, preferably of validation.

    Raises:
        UserError: Several metrics match, or there is no column `metric`.
    """
    if metric is None:
        named = [name for name in header if known(metric_name(name)).better and metric_name(name) != "loss"]
    else:
        named = [name for name in header if _normalise(metric) in (_normalise(name), metric_name(name))]
        if not named:
            raise UserError(f"a column {shown(metric)!r}", _listed(header), "Correct --metric.")
    fitting = [name for name in named if _normalise(name).startswith(_SPLITS)] or named
    if len(fitting) > 1:
        action = f"Choose one: --metric {shown(fitting[0])}"
        raise UserError("one column for the quality", _listed(fitting), action)
    return fitting[0] if fitting else None


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
    """Yield the rows of a JSON list of objects."""

    def cells(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_repeated([name for name, _ in pairs], path)
        return dict(pairs)

    try:
        rows = json.loads(path.read_bytes(), object_pairs_hook=cells)
    except (ValueError, RecursionError) as error:
        seen = f"{shown(path.name)}: {shown(str(error))}"
        raise UserError("a JSON document", seen, "Correct the file.") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        wanted = "a JSON list of objects, one for each row"
        raise UserError(wanted, shown(path.name), "Write it in this form, or as CSV.")
    for row in rows:
        yield ImportedRow(None, row)


_FORMS = {".csv": _csv_rows, ".json": _json_rows}


def read_table(path: Path, label: str, options: ImportOptions) -> Reading:
    """Read the runs of a CSV or JSON file, one per row.

    Args:
        path: The file.
        label: Its name in messages and tables.
        options: The user's options.

    Raises:
        UserError: A required column is missing or ambiguous, or no row can be read.
    """
    if path.suffix.lower() not in _FORMS:
        action = "Write a CSV file with the columns strategy, workers, training_seconds."
        raise UserError(f"a table: {', '.join(_FORMS)}", f"{label}, which is none of these", action)
    malformed: list[str] = []
    rows = list(_FORMS[path.suffix.lower()](path, malformed))
    if not rows:
        raise UserError("a table with rows", f"none in {shown(path.name)}", "Name another file.")
    header, file = list(dict.fromkeys(name for row in rows for name in row.cells)), shown(path.name)
    if "epoch" in map(_normalise, header):
        action = "Write one row for each run: workers, epoch_seconds (the mean of later epochs), quality."
        raise UserError("a table with a row for each run", f"a row for each epoch in {file}", action)
    columns = find_columns(header, options.columns)
    metric, columns = _metric(header, columns, options)
    defaults: dict[str, Any] = {
        "strategy": options.strategy,
        "workers": options.workers,
        "metric": metric,
        "better": options.better,
    }
    if "workers" not in columns and options.workers is None:
        action = "Name it: --column workers=NAME, or say the number for all: --workers N."
        raise UserError(f"a column of {file} for workers", _listed(header), action)
    if not columns.keys() & {*TIMES, "throughput", "quality"}:
        wanted = f"a column of {file} for training_seconds, throughput or quality"
        raise UserError(wanted, _listed(header), "Name the column: --column training_seconds=NAME.")
    used = {column.name for column in columns.values()}
    rest = [name for name in header if name not in used and name.strip()]
    swept = [name for name in rest if "." in name.strip(".") or _normalise(name) in BATCHES]
    parsed, skipped = _parse(rows, columns, swept, defaults)
    _sweep_batches(parsed)
    if not parsed:
        raise UserError("a row with numbers", f"none in {file}: {skipped[0]}", "Correct its rows.")
    remarks = _remarks(columns, swept, [name for name in rest if name not in swept])
    return Reading(tuple(_run(label, row) for row in parsed), tuple(remarks), (*malformed, *skipped))


def _metric(
    header: Sequence[str], columns: dict[str, ImportedColumn], options: ImportOptions
) -> tuple[str, dict[str, ImportedColumn]]:
    """Return the name of the metric, "" without a quality, and the columns with that of the quality.

    The option `metric` names a column, or what the column `quality` holds.

    Raises:
        UserError: As in `quality_column`, or the metric's direction is unknown.
    """
    asked = options.metric
    is_named = asked is not None and any(_normalise(asked) in (_normalise(n), metric_name(n)) for n in header)
    if "quality" not in columns or is_named:
        quality = quality_column(header, asked)
        if quality is None:
            return "", columns
        return metric_name(quality), columns | {"quality": ImportedColumn(quality)}
    if asked and not (known(asked).better or options.better):
        wanted = f"a column {shown(asked)!r}, or a metric that is known by name, for `quality`"
        action = "Correct --metric, or add --better higher or --better lower."
        raise UserError(wanted, _listed(header), action)
    return asked or metric_name(columns["quality"].name), columns


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
    if role == "strategy":
        return text
    try:
        number = float("nan" if isinstance(cell, bool) else cell)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{role} is {text}, which is not a number") from None
    if role in COUNTS or role == "seed":
        if not abs(number) < 2**53 or number != int(number) or (role in COUNTS and not 0 < number < 1e12):
            raise ValueError(f"{role} is {text}, which is not a count")
        return int(number)
    number *= factor
    if role in (*TIMES, "throughput") and not LEAST < number < MOST:
        raise ValueError(f"{role} is {text}, not between {LEAST:g} and {MOST:g}")
    if role == "quality" and abs(number) > MOST:
        raise ValueError(f"quality is {text}, beyond {MOST:g}")
    return number


def _plain(value: Any) -> Any:
    """Return a swept value as in a study file; cells of CSV files are numbers, true, false or texts."""
    if not isinstance(value, str):
        return value if isinstance(value, bool | int | float) or value is None else shown(str(value))
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return shown(value.strip())
    return parsed if isinstance(parsed, bool | int | float | str) else shown(value.strip())


def _run(label: str, row: _Parsed) -> Run:
    """Build the run of a row."""
    values = row.values
    source = RunSource(label, row.line)
    workers, seed, strategy = values["workers"], values.get("seed"), values.get("strategy") or UNNAMED
    name = f"{strategy}-w{workers}{'' if seed is None else f'-s{seed}'} ({source})"
    per_worker, batch = values.get("per_worker_batch"), values.get("global_batch")
    if per_worker is None and batch and batch % workers == 0:
        per_worker = batch // workers
    outcome = Outcome(
        name=name if row.line else f"{name} #{row.number}",
        strategy=strategy,
        implementation=strategy,
        workers=workers,
        seed=seed,
        swept=row.swept,
        per_worker_batch=per_worker,
        global_batch=batch or (per_worker * workers if per_worker else None),
        epochs=values.get("epochs"),
        throughput=values.get("throughput"),
        training_seconds=values.get("training_seconds"),
        metric=values["metric"] if "quality" in values else "",
        better=values.get("better"),
        quality=values.get("quality"),
    )
    return Run(outcome, source=source, epoch_seconds=values.get("epoch_seconds"))


def _remarks(
    columns: Mapping[str, ImportedColumn], swept: Sequence[str], unused: Sequence[str]
) -> Iterator[str]:
    """Yield sentences on how the columns were understood."""
    parts = [
        f"{role} from {shown(column.name)}"
        + (" (in seconds)" if role in TIMES and column.factor == 1 else "")
        for role, column in columns.items()
    ]
    yield f"A row is a run: {', '.join(parts)}."
    if swept:
        yield f"Swept: {', '.join(map(shown, swept))}."
    if unused:
        yield f"Not used: {', '.join(map(shown, unused[:12]))}."
