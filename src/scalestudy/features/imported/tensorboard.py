"""Event files of TensorBoard: the scalars that Keras's callback, or a script, has written by epoch."""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from scalestudy.analysis.runs import Source
from scalestudy.errors import UserError
from scalestudy.features.imported import columns as names
from scalestudy.features.imported.base import Facts, Head, Reader, Reading, Wanted
from scalestudy.features.imported.named_run import run_of
from scalestudy.features.imported.rows import quality_column
from scalestudy.features.imported.text import shown
from scalestudy.features.imported.wire import BrokenError, fields, records
from scalestudy.study.records import EpochOutcome

NAME = "tfevents"
SPLITS = {"train": "", "training": "", "validation": "val_", "val": "val_", "eval": "val_", "test": "test_"}
"""Folders of a run that hold the events of a set, and what that puts before their tags."""
_FLOAT, _DOUBLE = 1, 2


class Scalar(NamedTuple):
    """A value of a tag; `time` is Unix time."""

    tag: str
    step: int
    time: float
    value: float


def run_folder(path: Path) -> Path:
    """Folder of the run that an event file belongs to."""
    return path.parent.parent if path.parent.name in SPLITS else path.parent


def event_files(folder: Path) -> list[Path]:
    """Event files of a run, by name: those of its folder and of its sets."""
    places = [folder, *(folder / split for split in SPLITS)]
    return sorted(path for place in places for path in place.glob(f"*{NAME}*") if path.is_file())


def _recognises(head: Head) -> bool:
    if head.path.is_dir():
        return bool(event_files(head.path))
    # A first record of the version of its format: "brain.Event:2".
    return NAME in head.path.name or b"brain.Event:" in head.data[:64]


def _read(path: Path, wanted: Wanted) -> Reading:
    files = event_files(path) if path.is_dir() else [path]
    skipped: list[str] = []
    series: dict[str, dict[int, Scalar]] = {}
    for file in files:
        before = SPLITS.get(file.parent.name, "") if path.is_dir() else ""
        for scalar in _scalars(file, skipped):
            series.setdefault(_name(scalar.tag, before), {})[scalar.step] = scalar
    if not series:
        raise UserError(
            "event files with scalars",
            f"none in {shown(path.name)}{': ' + skipped[0] if skipped else ''}",
            "Take the folder of a run that has written scalars by epoch.",
        )
    quality = quality_column(sorted(series), wanted)
    if wanted.metric and quality is None:
        raise UserError(
            f"a tag {wanted.metric}",
            f"{', '.join(shown(tag) for tag in sorted(series)[:12])}",
            "Correct --metric.",
        )
    run, remarks = run_of(path, wanted)
    log = _epochs(series, quality)
    metric = names.metric_name(quality) if quality else ""
    facts = Facts(
        Source(path.name, None, "TensorBoard events"),
        workers=run.workers, strategy=run.strategy, seed=run.seed,
        quality=series[quality][max(series[quality])].value if quality else None, metric=metric,
        better=wanted.better, epochs=len(log) or None, samples=wanted.samples,
        log=log,
    )  # fmt: skip
    remarks.append(f"Tags: {', '.join(shown(tag) for tag in sorted(series)[:12])}.")
    if len(log) > 1:
        remarks.append(
            "Times of epochs are those between their events, so they have evaluation in them; when the first"
            " began is not known."
        )
    return Reading((facts,), tuple(remarks), tuple(skipped))


def _name(tag: str, before: str) -> str:
    """A tag as a column of a log: Keras's `epoch_loss` of validation/ is `val_loss`."""
    short = names.squeezed(tag.removeprefix("epoch_").rpartition("/")[2])
    return short if not before or short.startswith(before) else before + short


def _epochs(series: Mapping[str, Mapping[int, Scalar]], quality: str | None) -> tuple[EpochOutcome, ...]:
    losses, validation = series.get("loss", {}), series.get("val_loss", {})
    marks = losses or validation or (series[quality] if quality else {})
    found: list[EpochOutcome] = []
    before: float | None = None
    for place, step in enumerate(sorted(marks), start=1):
        mark = marks[step]
        seconds = mark.time - before if before is not None and mark.time > before else None
        before = mark.time
        values = {"loss": validation[step].value} if step in validation else {}
        if quality and step in series[quality]:
            values[names.metric_name(quality)] = series[quality][step].value
        loss = losses[step].value if step in losses else None
        found.append(EpochOutcome(epoch=place, loss=loss, train_seconds=seconds, validation=values))
    return tuple(found)


def _scalars(file: Path, skipped: list[str]) -> Iterator[Scalar]:
    with file.open("rb") as stream:
        try:
            for record in records(stream):
                yield from _of_event(record)
        except BrokenError as error:
            skipped.append(f"{shown(file.name)} from byte {stream.tell()} on: {error}")


def _of_event(record: bytes) -> Iterator[Scalar]:
    """Scalars of an `Event`: its wall_time is field 1, its step 2, its summary 5."""
    time, step, summaries = 0.0, 0, []
    for number, value in fields(record):
        if number == 1 and isinstance(value, bytes) and len(value) == 8:
            (time,) = struct.unpack("<d", value)
        elif number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, entry in fields(summary):
            if number == 1 and isinstance(entry, bytes) and (found := _of_value(entry)):
                yield Scalar(found[0], step, time, found[1])


def _of_value(entry: bytes) -> tuple[str, float] | None:
    """Tag and number of a `Summary.Value`: tag 1, simple_value 2, tensor 8."""
    tag, value = "", None
    for number, data in fields(entry):
        if number == 1 and isinstance(data, bytes):
            tag = data.decode(errors="replace")
        elif number == 2 and isinstance(data, bytes) and len(data) == 4:
            (value,) = struct.unpack("<f", data)
        elif number == 8 and isinstance(data, bytes):
            value = _of_tensor(data)
    return None if value is None else (tag, value)


def _of_tensor(data: bytes) -> float | None:
    """The number of a scalar `TensorProto`: dtype 1, tensor_content 4, float_val 5, double_val 6."""
    kind, content = 0, {}
    for number, value in fields(data):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number in (4, 5, 6) and isinstance(value, bytes):
            content[number] = value
    form = {_FLOAT: "<f", _DOUBLE: "<d"}.get(kind)
    raw = content.get(4) or content.get(5 if kind == _FLOAT else 6, b"")
    if form is None or len(raw) != struct.calcsize(form):
        return None
    found: float = struct.unpack(form, raw)[0]
    return found


READER = Reader("TensorBoard event files", _recognises, _read, "events.out.tfevents.*")
