"""MLPerf logs: `:::MLLOG {json}`, one training a file."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scalestudy.analysis.foreign.base import Facts, Head, Reader, Reading, Wanted
from scalestudy.analysis.foreign.named_run import run_of
from scalestudy.analysis.foreign.text import lines, shown
from scalestudy.analysis.foreign.values import number, whole
from scalestudy.analysis.runs import Source
from scalestudy.errors import UserError
from scalestudy.study.records import EpochOutcome

MARK = ":::MLLOG"
_QUALITIES = ("eval_accuracy", "eval_mean_iou", "eval_dice", "eval_error")
_FIRST = (
    "seed", "global_batch_size", "train_samples", "eval_samples", "opt_base_learning_rate", "number_of_ranks",
    "number_of_nodes", "accelerators_per_node",
)  # fmt: skip


def _read(path: Path, wanted: Wanted) -> Reading:
    skipped: list[str] = []
    found: dict[str, Any] = {}
    curve: dict[int, float] = {}
    metric, placed, status = "", [0, 0], ""
    for line, event in _events(path, skipped):
        key, value = event.get("key"), event.get("value")
        data = event.get("metadata") if isinstance(event.get("metadata"), dict) else {}
        placed = [placed[0] or line, line]
        if key in ("run_start", "run_stop"):
            found.setdefault(str(key), number(event.get("time_ms")))
            status = str((data or {}).get("status", status))
        elif key in _QUALITIES and (quality := number(value)) is not None:
            metric = str(key).removeprefix("eval_")
            curve[whole((data or {}).get("epoch_num")) or len(curve) + 1] = quality
        elif key in _FIRST:
            found.setdefault(str(key), value)
    facts, remarks = _run(path, found, curve, metric, wanted, (placed[0], placed[1]))
    if status and status != "success":
        raise UserError(
            "an MLPerf run that reached its target",
            f"{shown(path.name)}, which says {shown(status)}",
            "Leave it out.",
        )
    return Reading((facts,), tuple(remarks), tuple(skipped))


def _run(
    path: Path,
    found: Mapping[str, Any],
    curve: Mapping[int, float],
    metric: str,
    wanted: Wanted,
    placed: tuple[int, int],
) -> tuple[Facts, list[str]]:
    start, stop = found.get("run_start"), found.get("run_stop")
    if not start or not stop or not 0 < stop - start < float("inf"):
        raise UserError(
            "an MLPerf log with run_start and run_stop",
            f"{shown(path.name)} without them, or with no time between",
            "Take the log of a run that ended.",
        )
    nodes, each = whole(found.get("number_of_nodes")), whole(found.get("accelerators_per_node"))
    ranks = whole(found.get("number_of_ranks")) or (nodes * each if nodes and each else None)
    run, remarks = run_of(path, wanted, None, ranks if ranks and ranks > 0 else None)
    remarks.append(
        "Time is from run_start to run_stop: evaluation is in it, and it ends at a target quality."
    )
    log = [EpochOutcome(epoch=n, validation={metric: curve[n]}) for n in sorted(curve) if n > 0]
    facts = Facts(
        Source(path.name, placed, "MLPerf log"),
        workers=run.workers,
        strategy=run.strategy,
        seed=whole(found.get("seed")),
        seconds=(stop - start) / 1000,
        quality=curve[max(curve)] if curve else None,
        metric=metric,
        better="lower" if metric == "error" else wanted.better,
        epochs=max(curve, default=0) or wanted.epochs,
        global_batch=_count(found.get("global_batch_size")),
        samples=_count(found.get("train_samples")) or wanted.samples,
        labels=_count(found.get("eval_samples")),
        log=tuple(log),
    )
    return facts, remarks


def _count(value: Any) -> int | None:
    found = whole(value)
    return found if found and found > 0 else None


def _events(path: Path, skipped: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for line, text in enumerate(lines(path), start=1):
        _, mark, rest = text.partition(MARK)
        if not mark:
            continue
        try:
            event = json.loads(rest)
        except (ValueError, RecursionError):
            event = None
        if isinstance(event, dict):
            yield line, event
        else:
            skipped.append(f"line {line}: no JSON after {MARK}")


def _recognises(head: Head) -> bool:
    return MARK in head.text


READER = Reader("MLPerf log", _recognises, _read, ":::MLLOG lines")
