"""Read TensorBoard event files with its own package: scalars that Keras's callback has logged per epoch."""

import importlib.util
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from scalestudy.features.imported.columns import ImportOptions, normalised, shown
from scalestudy.features.imported.table import ImportedRow, Reading, read_rows
from scalestudy.util.errors import UserError

MARK = "tfevents"
"""Part of the name of every event file."""
SPLITS = {"train": "", "validation": "val_", "val": "val_", "test": "test_"}
"""Subfolders of a run with the events of one split, and the prefix that their tags get."""


def run_folder(event_file: Path) -> Path:
    """Return the folder of the run that an event file belongs to."""
    return event_file.parent.parent if event_file.parent.name in SPLITS else event_file.parent


def require_tensorboard() -> None:
    """Raise `UserError` if the package tensorboard is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        raise UserError(
            "the package tensorboard, which reads event files",
            "an environment without it",
            "Install it (pip install tensorboard), or use tables and CSV logs only.",
        )


def read_events(folder: Path, label: str, options: ImportOptions) -> Reading:
    """Read the run of a folder of event files, including subfolders such as `train/` and `validation/`.

    The time of an epoch is the time between the previous epoch's event and its own.

    Raises:
        UserError: No loss was logged, or the folder's name does not state the number of workers.
    """
    series: dict[str, dict[int, tuple[float, float]]] = {}
    for place, prefix in {folder: "", **{folder / name: before for name, before in SPLITS.items()}}.items():
        if any(place.glob(f"*{MARK}*")):
            for tag, step, time, value in _scalars(place):
                name = normalised(tag.removeprefix("epoch_").rpartition("/")[2])
                series.setdefault(prefix + name.removeprefix(prefix), {})[step] = time, value
    marks = series.get("loss") or series.get("val_loss") or {}
    if not marks:
        raise UserError(
            "event files with a scalar `loss` or `epoch_loss`",
            f"{shown(folder.name)}, whose tags are {', '.join(map(shown, series)) or 'none'}",
            "Name the folder of a run that logged its loss by epoch.",
        )
    rows: list[dict[str, Any]] = [
        {"epoch": step, **{name: values[step][1] for name, values in series.items() if step in values}}
        for step in sorted(marks)
    ]
    for row, (before, after) in zip(rows[1:], pairwise(sorted(marks)), strict=True):
        row["epoch_seconds"] = marks[after][0] - marks[before][0] or None
    reading = read_rows(folder, label, [ImportedRow(None, row) for row in rows], options)
    remark = "Times of epochs are those between TensorBoard's events, with evaluation in them."
    return reading._replace(remarks=(*reading.remarks, remark))


def _scalars(folder: Path) -> Sequence[tuple[str, int, float, float]]:
    """Return tag, step, Unix time and value of each scalar in a folder's event files."""
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, TENSORS, EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    events = EventAccumulator(str(folder), size_guidance={SCALARS: 0, TENSORS: 0})
    events.Reload()
    scalars: list[tuple[str, int, float, float]] = []
    for tag in events.Tags()["scalars"]:
        scalars += [(tag, event.step, event.wall_time, event.value) for event in events.Scalars(tag)]
    for tag in events.Tags()["tensors"]:
        if events.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
            for event in events.Tensors(tag):
                value = make_ndarray(event.tensor_proto)
                scalars += [(tag, event.step, event.wall_time, float(value))] * (value.size == 1)
    return scalars
