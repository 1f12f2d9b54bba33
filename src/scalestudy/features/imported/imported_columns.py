"""Find the columns of an imported table by their names or options, and a log's run by its file name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

from scalestudy.config.file import QualityMargin
from scalestudy.config.objectives import Better, known
from scalestudy.plugins.strategies import REGISTRY
from scalestudy.util.errors import UserError, printable

NAMES: dict[str, tuple[str, ...]] = {
    "strategy": ("strategy", "method"),
    "workers": ("workers", "gpus", "num_gpus", "ranks"),
    "seed": ("seed",),
    "epoch": ("epoch",),
    "training_seconds": ("training_seconds", "training_time", "seconds"),
    "epoch_seconds": ("epoch_seconds", "time_per_epoch", "epoch_time"),
    "throughput": ("throughput", "samples_per_second", "images_per_second"),
    "quality": ("quality",),
    "metric": ("metric",),
    "better": ("better",),
    "loss": ("loss",),
    "validation_loss": ("validation_loss", "val_loss"),
    "learning_rate": ("learning_rate", "lr"),
    "epochs": ("epochs",),
    "per_worker_batch": ("per_worker_batch",),
    "global_batch": ("global_batch",),
    "oversubscribed": ("oversubscribed",),
}
"""Normalised column names of each role; the first is the documented one."""
TIMES = ("training_seconds", "epoch_seconds")
UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
"""Units of time in seconds; a name may end in one, in brackets."""
LONGEST = 60
_UNIT = re.compile(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]")
_SPLITS = ("val_", "validation_", "test_")


class ImportedColumn(NamedTuple):
    """A column: its name in the file, and its unit in seconds."""

    name: str
    factor: float = 1.0


def shown(text: str) -> str:
    """Return text from a file for a message: printable, and at most `LONGEST` characters before "…"."""
    clean = printable(text)
    return clean if len(clean) <= LONGEST else f"{clean[:LONGEST]}…"


def normalise(name: str) -> str:
    """Return a name in lower case with underscores: `Time per Epoch` becomes `time_per_epoch`."""
    return re.sub(r"[^a-z0-9.]+", "_", name.strip().lower()).strip("_")


def find_columns(header: Sequence[str], given: Mapping[str, str]) -> dict[str, ImportedColumn]:
    """Return the column of each role that the table has; `given` names by role take precedence.

    Raises:
        UserError: Two columns match one role, a given column is missing, or a unit is unknown.
    """
    for role, name in given.items():
        if name not in header:
            wanted = f"a column {shown(name)!r} for {role}"
            raise UserError(wanted, join_words(header), f"Correct --column {role}=NAME.")
    columns = {}
    for role, names in NAMES.items():
        free = [name for name in header if name not in given.values()]
        fitting = [given[role]] if role in given else [n for n in free if _split_unit(n, role)[0] in names]
        if len(fitting) > 1:
            both = ", ".join(repr(shown(name)) for name in fitting)
            raise UserError(
                f"one column for {role}", both, f"Choose one: --column {role}={shown(fitting[0])}"
            )
        for name in fitting:
            unit = _split_unit(name, role)[1]
            if unit not in UNITS:
                wanted, seen = f"a time in {', '.join(filter(None, UNITS))}", f"the column {shown(name)!r}"
                raise UserError(wanted, seen, "Rename or convert that column.")
            columns[role] = ImportedColumn(name, UNITS[unit])
    return columns


def name_columns(header: Sequence[str], metric: str) -> list[str]:
    """Return the columns of a metric, such as `accuracy` and `val_accuracy`."""
    return [name for name in header if normalise(metric) in (normalise(name), metric_name(name))]


def quality_column(header: Sequence[str], metric: str | None) -> str | None:
    """Return the column of the quality: `metric`, else a known one, preferably of validation.

    Metrics to maximise come before errors, and a loss comes last; that of the training data is none.

    Raises:
        UserError: Several metrics match, or there is no column `metric`.
    """
    if metric is not None:
        named = name_columns(header, metric)
        if not named:
            raise UserError(f"a column {shown(metric)!r}", join_words(header), "Correct --metric.")
        return next((name for name in named if _is_validation(name)), named[0])
    metrics = [name for name in header if known(metric_name(name)).better == "higher"]
    errors = [name for name in header if known(metric_name(name)).better == "lower"]
    metrics = metrics or [name for name in errors if metric_name(name) != "loss"]
    metrics = metrics or [name for name in errors if _is_validation(name)]
    fitting = [name for name in metrics if _is_validation(name)] or metrics
    if len(fitting) > 1:
        raise UserError(
            "one column for the quality", join_words(fitting), f"Choose one: --metric {shown(fitting[0])}"
        )
    return fitting[0] if fitting else None


def metric_name(column: str) -> str:
    """Return the metric in a column: `accuracy` for `val_accuracy`."""
    name = normalise(column)
    return next((name.removeprefix(split) for split in _SPLITS if name.startswith(split)), name)


def _is_validation(column: str) -> bool:
    return normalise(column).startswith(_SPLITS)


def _split_unit(name: str, role: str) -> tuple[str, str]:
    """Split off the unit of a time: `Training time [min]` becomes ("training_time", "min")."""
    with_unit = _UNIT.fullmatch(name.strip()) if role in TIMES else None
    return (normalise(with_unit[1]), with_unit[2].strip().lower()) if with_unit else (normalise(name), "")


def join_words(names: Sequence[str]) -> str:
    """Return the names of columns for a message."""
    return f"the columns {', '.join(shown(name) for name in names[:20])}"


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
    better: str | None = None,
    margin: str | None = None,
) -> ImportOptions:
    """Return `ImportOptions` from command-line values, with `columns` such as ["workers=NCORES"].

    Raises:
        UserError: A column's role, the value of `better` or the margin is unknown.
    """
    pairs = {}
    for text in columns:
        role, _, name = text.partition("=")
        if not name or role not in NAMES:
            raise UserError(
                f"--column ROLE=NAME, with one of the roles {', '.join(NAMES)}",
                repr(text),
                "Correct --column.",
            )
        pairs[role] = name
    if better not in (None, "higher", "lower"):
        raise UserError("higher or lower", repr(better), "Correct --better.")
    try:
        accepted = None if margin is None else QualityMargin.parse(margin if "%" in margin else float(margin))
    except ValueError:
        raise UserError(
            "a number above 0 in units of the metric, or a percentage",
            repr(margin),
            "Correct --quality-margin.",
        ) from None
    return ImportOptions(pairs, strategy, workers, metric, cast(Better | None, better), accepted)


OTHERS = ("fsdp", "deepspeed")
"""Strategies recognised in file names although no engine here has them."""
_COUNT = re.compile(
    r"(?:(?:w|n|np|gpus?|ngpus?|workers?|ranks?)[_=-]?(\d{1,6})|(\d{1,6})[_-]?(?:x?gpus?|workers?|ranks?))"
)
_SEED = re.compile(r"(?:s|seed)[_=-]?(\d{1,15})")
_SPLIT = re.compile(r"[_\-. ]+")


class LogName(NamedTuple):
    """Values read from a name; None if it does not state them."""

    workers: int | None = None
    strategy: str | None = None
    seed: int | None = None


def run_of_log(path: Path, options: ImportOptions) -> LogName:
    """Return workers, strategy and seed of a log's run, from the options or else from its name and folders.

    Raises:
        UserError: Neither states the number of workers.
    """
    parts = path.absolute().parts[-3:]
    name = parse_name((*parts[:-1], path.stem))
    workers = options.workers or name.workers
    if workers is None:
        raise UserError(
            "a log whose name states its number of workers, such as log_8.csv or run-w8/",
            shown(path.name),
            "Rename it, or give one number for all: --workers N.",
        )
    return LogName(workers, options.strategy or name.strategy, name.seed)


def parse_name(parts: tuple[str, ...]) -> LogName:
    """Read workers, strategy and seed from the parts of a path, starting with the last.

    A bare number in the last part is the number of workers (`log_8`) if no number there is marked as such.
    Two different bare numbers are ambiguous and ignored.
    """
    known = {name: name for name in OTHERS}
    known |= {word: row.name for row in REGISTRY.items() for word in (row.name, *row.aliases)}
    workers = strategy = seed = None
    for part in reversed(parts):
        words = [word for word in _SPLIT.split(part.lower()) if word]
        joined = "_".join(words)
        strategy = strategy or next((known[word] for word in words if word in known), None)
        if workers is None:
            counts = {int(found[1] or found[2]) for found in _whole_words(_COUNT, joined)}
            if part == parts[-1]:
                counts = counts or {int(word) for word in words if re.fullmatch(r"[0-9]{1,6}", word)}
            workers = counts.pop() if len(counts) == 1 and min(counts) > 0 else None
        if seed is None:
            seeds = {int(found[1]) for found in _whole_words(_SEED, joined)}
            seed = seeds.pop() if len(seeds) == 1 else None
    return LogName(workers, strategy, seed)


def _whole_words(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"(?:(?<=_)|^)(?:{pattern.pattern})(?=_|$)", text))
