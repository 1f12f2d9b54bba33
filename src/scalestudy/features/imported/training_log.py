"""Logs of one training, a row an epoch: Keras's CSVLogger, and those that time their epochs themselves."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from scalestudy.analysis.runs import Source
from scalestudy.errors import UserError
from scalestudy.features.imported import columns as names
from scalestudy.features.imported.base import Facts, Reading, Wanted
from scalestudy.features.imported.columns import Column
from scalestudy.features.imported.named_run import run_of
from scalestudy.features.imported.rows import Row, quality_column
from scalestudy.features.imported.text import shown
from scalestudy.features.imported.units import factor, said
from scalestudy.features.imported.values import number
from scalestudy.study.records import EpochOutcome
from scalestudy.study.strategies import DEFAULT

PUBLISHED = ("time_per_epoch", "loss", "lr", "training_time", "test_time")
"""Columns of a published study, whose files of the native strategy do not name it: `log_8.csv`."""
_ROLES = ("epoch", "epoch_seconds", "seconds", "loss", "validation_loss", "learning_rate")


def is_one(header: Sequence[str]) -> bool:
    """Whether a header is that of a log: it has epochs, or their times beside losses, and no workers."""
    try:
        roles = names.find(header, {}).keys()
    except UserError:
        return False
    timed = "epoch_seconds" in roles and bool(roles & {"loss", "learning_rate"})
    return "workers" not in roles and ("epoch" in roles or timed) and len(header) > 1


def read(path: Path, rows: Iterable[Row], wanted: Wanted, comma: bool) -> Reading:
    """The one run of a log.

    Raises:
        UserError: Neither its name nor the user says how many workers it had; or there is no epoch in it.
    """
    header: list[str] = []
    found: dict[str, Column] = {}
    quality: str | None = None
    values: list[dict[str, float]] = []
    placed: list[int] = []
    skipped: list[str] = []
    for row in rows:
        if not header:
            header = list(row.cells)
            found = names.find(header, wanted.columns)
            quality = quality_column(header, wanted) if "quality" not in found else found["quality"].name
        made = _epoch(row.cells, found, quality, wanted, comma)
        if isinstance(made, str):
            skipped.append(f"line {row.line}: {made}")
        else:
            values.append(made)
            placed.append(row.line)
    if not values:
        raise UserError(
            "a log with an epoch in it", f"none in {shown(path.name)}", "Take the log of a run that trained."
        )
    metric = "" if quality is None else names.metric_name(quality)
    source = Source(path.name, (placed[0], placed[-1]), "training log")
    default = DEFAULT if set(PUBLISHED) <= {names.squeezed(name) for name in header} else None
    run, remarks = run_of(path, wanted, default)
    facts = Facts(
        source,
        workers=run.workers,
        strategy=run.strategy,
        seed=run.seed,
        seconds=_total(values),
        quality=values[-1].get("quality"),
        metric=metric,
        better=wanted.better,
        epochs=len(values),
        samples=wanted.samples,
        log=tuple(
            _outcomes(values, metric, of_the_end=quality is not None and names.squeezed(quality) == metric)
        ),
    )
    told = [
        f"{role} from {shown(found[role].name)}{said(role, found[role], wanted)}"
        for role in found
        if role in _ROLES
    ]
    told += [f"quality from {shown(quality)}"] if quality else []
    remarks += [f"A row is an epoch: {', '.join(told)}."]
    if facts.seconds is None and "epoch_seconds" not in values[-1]:
        remarks.append("No column has times, so there is no speed-up: losses and quality are taken.")
    return Reading((facts,), tuple(remarks), tuple(skipped))


def _epoch(
    cells: Mapping[str, Any], found: Mapping[str, Column], quality: str | None, wanted: Wanted, comma: bool
) -> dict[str, float] | str:
    """Values of an epoch by role, or why it cannot be read."""
    values = {}
    for role in _ROLES:
        text = cells.get(found[role].name) if role in found else None
        if text is None or not str(text).strip():
            continue
        value = number(text, comma)
        timed = role in names.TIMED
        if value is None or (timed and not (math.isfinite(value) and value >= 0)):
            return (
                f"{role} {shown(str(text))} is no number"
                if value is None
                else f"{role} {shown(str(text))} is no time"
            )
        values[role] = value * factor(role, found[role], wanted)
    if quality is not None and (value := number(cells.get(quality), comma)) is not None:
        values["quality"] = value
    return values or "nothing in it is a number"


def _total(values: Sequence[Mapping[str, float]]) -> float | None:
    """Seconds of the whole training: as stated in every row, the last where they grow, else the sum."""
    stated = [each["seconds"] for each in values if "seconds" in each]
    if len(stated) == len(values):
        grows = all(a < b for a, b in pairwise(stated))
        total = stated[-1] if len(set(stated)) == 1 or grows else math.fsum(stated)
        return total or None
    times = [each["epoch_seconds"] for each in values if "epoch_seconds" in each]
    return math.fsum(times) or None if len(times) == len(values) else None


def _outcomes(
    values: Sequence[Mapping[str, float]], metric: str, *, of_the_end: bool
) -> Iterable[EpochOutcome]:
    """Epochs; a quality `of_the_end` that is the same in every row was measured once, and is not theirs."""
    elapsed: float | None = 0.0
    constant = of_the_end and len({each.get("quality") for each in values}) == 1
    for count, each in enumerate(values, start=1):
        seconds = each.get("epoch_seconds")
        elapsed = None if elapsed is None or seconds is None else elapsed + seconds
        validation = {"loss": each["validation_loss"]} if "validation_loss" in each else {}
        if metric and "quality" in each and (not constant or len(values) == 1):
            validation[metric] = each["quality"]
        yield EpochOutcome(
            epoch=count,
            learning_rate=each.get("learning_rate"),
            loss=each.get("loss"),
            train_seconds=seconds,
            elapsed_training_seconds=elapsed,
            validation=validation,
        )
