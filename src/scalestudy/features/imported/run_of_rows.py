"""Build runs from parsed rows: from one row, or from the rows of a run's epochs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, harmonic_mean
from typing import Any, Literal

from scalestudy.analysis.runs import Run, RunSource
from scalestudy.config.metric_senses import Better
from scalestudy.features.imported.cells import ParsedRow, values_in
from scalestudy.features.imported.columns import OF_RUNS
from scalestudy.store.records import EpochOutcome, Outcome
from scalestudy.util.errors import UserError

UNNAMED = "unnamed"
"""Strategy of runs whose file states none."""
GROWN = 1.5
"""Last time over the first from which rising times are those since the start, not those of an epoch."""
TimesOf = Literal["run", "start", "epoch"]
"""What the times of a training in rows of epochs are: that of the whole run, the time since its start, or
that of each epoch."""


@dataclass(frozen=True)
class FileFacts:
    """What all runs of a file share.

    Attributes:
        label: Name of the file in messages and tables.
        metric: Name of the metric that is the quality.
        better: Which direction is better, if the user said it.
    """

    label: str
    metric: str
    better: Better | None = None


def run_of_row(facts: FileFacts, row: ParsedRow) -> Run:
    """Build the run of a row."""
    return _run(facts, [row], row.values)


def times_of_epochs(
    groups: Sequence[Sequence[ParsedRow]],
    file: str,
    column: str,
) -> TimesOf:
    """Return what the times of a training are in rows of epochs.

    Raises:
        UserError: They rise too little to tell.
    """
    # A column means one thing in a whole file, whose runs are therefore judged together.
    kinds = {_times_of(rows) for rows in groups}
    kinds.discard(None)
    # Without any time there is no kind, and the answer is of no effect.
    if kinds <= {"run"}:
        return "run"
    if kinds == {"start"}:
        return "start"
    if "start" not in kinds and "rising" not in kinds:
        return "epoch"
    action = f"Say which: --column epoch_seconds={column}, or leave out that column."
    raise UserError(
        "times of each epoch, or since the start",
        f"{column} in {file}, which may be both",
        action,
    )


def _times_of(
    rows: Sequence[ParsedRow],
) -> Literal["run", "start", "epoch", "rising"] | None:
    times = []
    for row in rows:
        if "training_seconds" in row.values:
            times.append(row.values["training_seconds"])
    if not times:
        return None
    if len(set(times)) == 1:
        return "run"
    if any(later <= earlier for earlier, later in pairwise(times)):
        return "epoch"
    # Times of an epoch may rise a little by chance; times since the start rise by an epoch each.
    if times[-1] >= GROWN * times[0]:
        return "start"
    return "rising"


def run_of_epochs(facts: FileFacts, rows: Sequence[ParsedRow], times: TimesOf) -> Run:
    """Build a run from its epochs. A quality that is equal in all rows is the final one."""
    seconds = _epoch_seconds(rows, times)
    qualities = values_in(rows, "quality")
    # The published logs repeat the IoU of the final model in each row: it is no curve.
    is_final = len(rows) > 1 and len(set(qualities)) == 1
    epochs = []
    elapsed: float | None = 0.0
    for number, (row, taken) in enumerate(zip(rows, seconds, strict=True), start=1):
        values = row.values
        validation = {}
        if "validation_loss" in values:
            validation["loss"] = values["validation_loss"]
        if "quality" in values and not is_final:
            validation[facts.metric] = values["quality"]
        # From an epoch of unknown time on, the time since the start is unknown.
        if elapsed is not None and taken is not None:
            elapsed += taken
        else:
            elapsed = None
        outcome = EpochOutcome(
            epoch=number,
            learning_rate=values.get("learning_rate"),
            loss=values.get("loss"),
            train_seconds=taken,
            elapsed_training_seconds=elapsed,
            validation=validation,
        )
        epochs.append(outcome)
    values_of_run = _values_of_run(rows, seconds)
    known_qualities = [quality for quality in qualities if quality is not None]
    if known_qualities:
        values_of_run["quality"] = known_qualities[-1]
    if times == "epoch" or "training_seconds" not in values_of_run:
        values_of_run.pop("training_seconds", None)
        if elapsed is not None:
            values_of_run["training_seconds"] = elapsed
    return replace(_run(facts, rows, values_of_run), epochs=tuple(epochs))


def _values_of_run(
    rows: Sequence[ParsedRow], seconds: Sequence[float | None]
) -> dict[str, Any]:
    """Return the values of a run by role: those of its last epoch, and means over its epochs."""
    values: dict[str, Any] = {}
    for role, value in rows[-1].values.items():
        if role not in OF_RUNS:
            values[role] = value
    values["epochs"] = len(rows)
    # The first epoch compiles and fills caches.
    steady = [taken for taken in seconds[1:] if taken is not None]
    values.pop("epoch_seconds", None)
    if steady:
        values["epoch_seconds"] = fmean(steady)
    rates = []
    for row in rows[1:]:
        if "throughput" in row.values:
            rates.append(row.values["throughput"])
    values.pop("throughput", None)
    if rates:
        # Epochs are of equal work, so the rate of all is the samples by the sum of their times.
        values["throughput"] = harmonic_mean(rates)
    return values


def _epoch_seconds(rows: Sequence[ParsedRow], times: TimesOf) -> list[float | None]:
    """Return the seconds of each epoch; None where unknown."""
    is_stated = any("epoch_seconds" in row.values for row in rows)
    if is_stated or times == "run":
        return values_in(rows, "epoch_seconds")
    totals = values_in(rows, "training_seconds")
    if times == "epoch":
        return totals
    seconds: list[float | None] = []
    before = 0.0
    for total in totals:
        if total is None:
            seconds.append(None)
        else:
            seconds.append(total - before)
            before = total
    return seconds


def _run(facts: FileFacts, rows: Sequence[ParsedRow], values: Mapping[str, Any]) -> Run:
    """Build a run from these rows; `values` holds its values by role."""
    first = rows[0].row
    last_line = None
    if len(rows) > 1:
        last_line = rows[-1].row.line
    source = RunSource(facts.label, first.line, last_line)
    workers = values["workers"]
    seed = values.get("seed")
    strategy = values.get("strategy") or UNNAMED
    name = f"{strategy}-w{workers}"
    if seed is not None:
        name += f"-s{seed}"
    name += f" ({source})"
    # Rows of JSON have no lines, so their source does not tell them apart.
    if not first.line:
        name += f" #{first.number}"
    per_worker = values.get("per_worker_batch")
    batch = values.get("global_batch")
    # A batch that does not divide evenly is of unequal slices: no worker's is known.
    if per_worker is None and batch and batch % workers == 0:
        per_worker = batch // workers
    if batch is None and per_worker is not None:
        batch = per_worker * workers
    metric = ""
    if "quality" in values:
        metric = facts.metric
    outcome = Outcome(
        name=name,
        strategy=strategy,
        implementation=strategy,
        workers=workers,
        seed=seed,
        swept=rows[0].swept,
        per_worker_batch=per_worker,
        global_batch=batch,
        epochs=values.get("epochs"),
        samples_processed=values.get("samples_processed"),
        throughput=values.get("throughput"),
        training_seconds=values.get("training_seconds"),
        metric=metric,
        better=facts.better,
        quality=values.get("quality"),
    )
    return Run(outcome, source=source, epoch_seconds=values.get("epoch_seconds"))
