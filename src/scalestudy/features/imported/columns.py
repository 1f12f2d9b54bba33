"""Find the columns of an imported file by their names, their units, or the user's options."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal, NamedTuple

from scalestudy.config.metric_senses import Better, known
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.features.imported.file_rows import printable_name
from scalestudy.util.errors import UserError

_SAMPLES = "image images img imgs sample samples example examples token tokens sequence sequences item items"
# Names as `normalise` writes them: `Images/sec` is images_sec, and `img/s/GPU` is img_s_gpu.
_PER_SECOND = ("s", "sec", "second", "per_s", "per_sec", "per_second")
_RATES = tuple(map("_".join, product(_SAMPLES.split(), _PER_SECOND)))
_ONE = ("worker", "gpu", "device", "rank")
_EACH = (*map("per_{}".format, _ONE), *_ONE)
# As people write them in tables that they publish.
NAMES: dict[str, tuple[str, ...]] = {
    "strategy": ("strategy", "method"),
    "workers": (
        "workers",
        "gpus",
        "ngpus",
        "n_gpus",
        "num_gpus",
        "gpu_count",
        "number_of_gpus",
        "no_of_gpus",
        "nworkers",
        "n_workers",
        "number_of_workers",
        "ranks",
        "nranks",
        "n_ranks",
        "num_ranks",
        "world_size",
        "num_devices",
        "devices",
    ),
    "seed": ("seed", "random_seed"),
    "epoch": ("epoch",),
    "training_seconds": (
        "training_seconds",
        "training_time",
        "train_time",
        "total_time",
        "total_training_time",
        "time_to_train",
        "total_seconds",
    ),
    "epoch_seconds": (
        "epoch_seconds",
        "epoch_time",
        "time_per_epoch",
        "time_epoch",
        "seconds_per_epoch",
        "seconds_epoch",
        "sec_per_epoch",
        "sec_epoch",
        "s_per_epoch",
        "s_epoch",
        "epoch_duration",
    ),
    "throughput": ("throughput", "total_throughput", *_RATES),
    "throughput_per_worker": (
        *map("throughput_{}".format, _EACH),
        *map("{}_throughput".format, _EACH),
        *map("_".join, product(_RATES, _EACH)),
    ),
    "quality": ("quality",),
    "loss": ("loss", "train_loss", "training_loss"),
    "validation_loss": ("validation_loss", "val_loss"),
    "learning_rate": ("learning_rate", "lr"),
    "epochs": ("epochs", "n_epochs", "num_epochs", "number_of_epochs"),
    "per_worker_batch": (
        "per_worker_batch",
        "per_gpu_batch",
        "batch_per_gpu",
        "batch_size_per_gpu",
    ),
    "global_batch": ("global_batch", "global_batch_size"),
    "samples_processed": (
        "samples_processed",
        "processed_samples",
        "samples_seen",
        "images_processed",
        "images_seen",
        "tokens_processed",
        "tokens_seen",
    ),
}
"""Normalised column names of each role; the first is the documented one."""
# A table may have `nodes` beside `gpus`, or `time` beside `epoch_time`.
VAGUE: dict[str, tuple[str, ...]] = {
    "workers": ("nodes", "n_nodes", "nnodes", "num_nodes", "number_of_nodes"),
    "training_seconds": (
        "seconds",
        "time",
        "runtime",
        "run_time",
        "duration",
        "elapsed",
        "wall_time",
    ),
}
"""Names that mean a role only if no other column does."""
OF_EPOCHS = ("epoch", "loss", "validation_loss", "learning_rate")
"""Roles of files with a row for each epoch."""
OF_RUNS = ("samples_processed",)
"""Roles of files with a row for each run: in rows of epochs, they may be of the epoch or since the start."""
TIMES = ("training_seconds", "epoch_seconds")
UNITS = {
    "": 1.0,
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    # Clock times become seconds where the cells are read.
    **dict.fromkeys(("hh:mm:ss", "h:m:s", "h:mm:ss"), 1.0),
}
"""Units of time in seconds; a name may end in one, in brackets or as its last word."""
BATCHES = ("batch_size", "batch")
"""Columns that do not say whether they mean a worker's batch or all workers'; a row is told apart by them."""
_BRACKETS = re.compile(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]")
_SPLITS = ("val_", "validation_", "test_")
RowKind = Literal["run", "epoch"]


@dataclass(frozen=True)
class ImportOptions:
    """The user's options for reading the numbers.

    Attributes:
        columns: Column name by role, such as {"workers": "NCORES"}; takes precedence over names in the file.
        strategy: Strategy of runs whose file and its name do not state it.
        workers: Number of workers of runs whose file and its name do not state it.
        metric: Column of the quality, or the name of the metric in the column `quality`.
        better: Whether higher or lower quality is better, if the metric is unknown.
        margin: Accepted loss of quality; if None, the default.
        row: What a row is; if None, the file tells.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    strategy: str | None = None
    workers: int | None = None
    metric: str | None = None
    better: Better | None = None
    margin: QualityMargin | None = None
    row: RowKind | None = None


def options_of(
    columns: Sequence[str] = (),
    strategy: str | None = None,
    workers: int | None = None,
    metric: str | None = None,
    better: Better | None = None,
    margin: str | None = None,
    row: RowKind | None = None,
) -> ImportOptions:
    """Return `ImportOptions` from command-line values, with `columns` such as ["workers=NCORES"].

    Raises:
        UserError: A column's role or the margin is unknown.
    """
    pairs = {}
    for text in columns:
        # Names of columns may hold a further `=`, roles may not.
        role, _, name = text.partition("=")
        if not name or role not in NAMES:
            wanted = f"--column ROLE=NAME, with one of the roles {', '.join(NAMES)}"
            raise UserError(wanted, repr(text), "Correct --column.")
        pairs[role] = name
    accepted = None
    try:
        if margin is not None:
            stated: str | float = margin
            if "%" not in margin:
                stated = float(margin)
            accepted = QualityMargin.parse(stated)
    except ValueError:
        wanted = "a number above 0 in units of the metric, or a percentage"
        raise UserError(wanted, repr(margin), "Correct --quality-margin.") from None
    return ImportOptions(pairs, strategy, workers, metric, better, accepted, row)


class ImportedColumn(NamedTuple):
    """A column: its name in the file, and its unit in seconds."""

    name: str
    factor: float = 1.0


def listed(names: Sequence[str]) -> str:
    """Return the names of columns for a message."""
    shown = []
    for name in names[:20]:
        shown.append(printable_name(name) or "one without a name")
    return f"the columns {', '.join(shown)}"


def normalise(name: str) -> str:
    """Return a name in lower case with underscores: `Time per Epoch` becomes `time_per_epoch`."""
    # A dot stays, as it marks a key of a study: `train.batch_size`.
    return re.sub(r"[^a-z0-9.]+", "_", name.strip().lower()).strip("_")


def find_columns(
    header: Sequence[str], given: Mapping[str, str]
) -> dict[str, ImportedColumn]:
    """Return the column of each role that the file has; `given` names by role take precedence.

    Raises:
        UserError: Two columns match one role, a given column is missing, or a unit is unknown.
    """
    for role, name in given.items():
        if name not in header:
            wanted = f"a column {printable_name(name)!r} for {role}"
            raise UserError(wanted, listed(header), f"Correct --column {role}=NAME.")
    free = [name for name in header if name not in given.values()]
    columns = {}
    for role in NAMES:
        # The user's word goes before the names, and a column that it names has no second role.
        column = given.get(role) or _named(role, free)
        if column is not None:
            columns[role] = ImportedColumn(column, _factor(column, role))
    # Of two throughputs, the one that the user named counts, else that of all workers.
    if "throughput" in given:
        columns.pop("throughput_per_worker", None)
    elif "throughput_per_worker" in given:
        columns.pop("throughput", None)
    elif "throughput" in columns:
        columns.pop("throughput_per_worker", None)
    _refuse_parts_of_a_count(columns, free)
    return columns


def _named(role: str, free: Sequence[str]) -> str | None:
    """Return the column whose name means a role; None if there is none."""
    for names in (NAMES[role], VAGUE.get(role, ())):
        fitting = []
        for name in free:
            base, _ = _split_unit(name, role, names)
            if base in names:
                fitting.append(name)
        if len(fitting) > 1:
            shown = [printable_name(name) for name in fitting]
            both = ", ".join(map(repr, shown))
            action = f"Choose one: --column {role}={shown[0]}"
            raise UserError(f"one column for {role}", both, action)
        if fitting:
            return fitting[0]
    return None


def _factor(name: str, role: str) -> float:
    """Return the unit of a column in seconds."""
    names = (*NAMES[role], *VAGUE.get(role, ()))
    _, unit = _split_unit(name, role, names)
    if unit not in UNITS:
        wanted = "a time in ms, s, min, h"
        seen = f"the column {printable_name(name)!r}"
        raise UserError(wanted, seen, "Rename or convert that column.")
    return UNITS[unit]


def _split_unit(name: str, role: str, names: Sequence[str]) -> tuple[str, str]:
    """Split off the unit of a time: `Training time [min]` and `train_time_min` become (…, "min")."""
    whole = normalise(name)
    if role not in TIMES:
        return whole, ""
    with_brackets = _BRACKETS.fullmatch(name.strip())
    if with_brackets:
        inside = with_brackets[2].strip(" .").lower()
        return normalise(with_brackets[1]), inside.removeprefix("in ")
    start, _, unit = whole.rpartition("_")
    # `time_s` ends in a unit, but the name `training_seconds` is whole.
    if whole in names or unit not in UNITS:
        return whole, ""
    base = start.removesuffix("_in")
    # `train_min` leaves out that it is a time.
    if base not in names:
        base = f"{base}_time"
    return base, unit


def _refuse_parts_of_a_count(
    columns: Mapping[str, ImportedColumn], free: Sequence[str]
) -> None:
    """Raise `UserError` where nodes stand for workers although there are several GPUs on each."""
    workers = columns.get("workers")
    if workers is None or normalise(workers.name) not in VAGUE["workers"]:
        return
    for each in free:
        if normalise(each) not in ("gpus_per_node", "workers_per_node"):
            continue
        seen = f"{printable_name(workers.name)} and {printable_name(each)}"
        action = f"Add a column `workers` with their product, or --column workers={printable_name(workers.name)}."
        raise UserError("one column with the number of workers", seen, action)


def metric_name(column: str) -> str:
    """Return the metric in a column: `accuracy` for `val_accuracy` and `Accuracy (%)`."""
    with_brackets = _BRACKETS.fullmatch(column.strip())
    if with_brackets:
        column = with_brackets[1]
    name = normalise(column)
    for split in _SPLITS:
        if name.startswith(split):
            return name.removeprefix(split)
    return name


def is_of_validation(column: str) -> bool:
    """Whether a column's name says that it was measured on other data than the training data."""
    return normalise(column).startswith(_SPLITS)


def columns_of_metric(header: Sequence[str], metric: str) -> list[str]:
    """Return the columns of a metric, such as `accuracy` and `val_accuracy`."""
    wanted = normalise(metric)
    found = []
    for name in header:
        if wanted in (normalise(name), metric_name(name)):
            found.append(name)
    return found


def quality_column(header: Sequence[str], metric: str | None) -> str | None:
    """Return the column of the quality: `metric`, else that of a known metric, preferably of validation.

    Metrics to maximise come before errors, and the validation loss comes last; that of the training data is
    none.

    Raises:
        UserError: Several metrics match, or there is no column `metric`.
    """
    if metric is not None:
        candidates = columns_of_metric(header, metric)
        if not candidates:
            raise UserError(
                f"a column {printable_name(metric)!r}",
                listed(header),
                "Correct --metric.",
            )
    else:
        candidates = _known_metrics(header)
    # Of `accuracy` and `val_accuracy`, the second is of samples that were not trained on.
    fitting = list(filter(is_of_validation, candidates)) or candidates
    if len(fitting) > 1:
        action = f"Choose one: --metric {printable_name(fitting[0])}"
        raise UserError("one column for the quality", listed(fitting), action)
    if not fitting:
        return None
    return fitting[0]


def _known_metrics(header: Sequence[str]) -> list[str]:
    """Return the columns of metrics to maximise; without any, those of errors, else of validation losses."""
    gains = []
    errors = []
    losses = []
    for name in header:
        metric = metric_name(name)
        better = known(metric).better
        if better == "higher":
            gains.append(name)
        elif better == "lower" and metric != "loss":
            errors.append(name)
        elif better == "lower" and is_of_validation(name):
            losses.append(name)
    # A task reports several of its metrics, of which people compare the one to maximise.
    return gains or errors or losses


def find_quality(
    header: Sequence[str],
    columns: dict[str, ImportedColumn],
    options: ImportOptions,
) -> tuple[str, dict[str, ImportedColumn]]:
    """Return the name of the metric, "" without a quality, and the columns with that of the quality.

    The option `metric` names a column, or what the column `quality` holds.

    Raises:
        UserError: As in `quality_column`, or the metric's direction is unknown.
    """
    asked = options.metric
    # A column of that name goes before one that is called `quality`.
    names_column = asked is not None and columns_of_metric(header, asked)
    if "quality" not in columns or names_column:
        quality = quality_column(header, asked)
        if quality is None:
            return "", columns
        return metric_name(quality), columns | {"quality": ImportedColumn(quality)}
    if asked and not (known(asked).better or options.better):
        wanted = f"a column {printable_name(asked)!r}, or a metric that is known by name, for `quality`"
        action = "Correct --metric, or add --better higher or --better lower."
        raise UserError(wanted, listed(header), action)
    return asked or metric_name(columns["quality"].name), columns
