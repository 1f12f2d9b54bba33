"""Output of tf_cnn_benchmarks: images/sec of one run or several, one after another."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from scalestudy.analysis.foreign.base import Facts, Head, Reader, Reading, Wanted
from scalestudy.analysis.foreign.named_run import run_of
from scalestudy.analysis.foreign.text import lines, shown
from scalestudy.analysis.runs import Source
from scalestudy.errors import UserError

_TOTAL = re.compile(r"total images/sec:\s*(\S+)")
_STEP = re.compile(r"^\s*\d+\s+images/sec:\s*(\S+)")
_DEVICES = re.compile(r"^Devices:\s*\[(.*)\]")
_BATCH = re.compile(r"^Batch size:\s*(\d+) global")
_EACH = re.compile(r"^\s+(\d+)(?:\.0)? per device")
_NAMED = re.compile(r"^(Variables|Dataset|Model|Data format):\s*(.+?)\s*$")


def _recognises(head: Head) -> bool:
    return bool(
        _TOTAL.search(head.text) or re.search(r"images/sec|Img/sec", head.text)
    ) and not head.text.startswith(":::")


def _read(path: Path, wanted: Wanted) -> Reading:
    facts: list[Facts] = []
    remarks: dict[str, None] = {}
    skipped: list[str] = []
    head: dict[str, str] = {}
    rates: list[float] = []
    first = last = 0
    for number, line in enumerate(lines(path), start=1):
        _look(line, head)
        step, total = _STEP.match(line), _TOTAL.search(line)
        if step is None and total is None:
            continue
        first, last = first or number, number
        rate = _positive((step or total or [""])[1])
        if rate is None:
            skipped.append(f"line {number}: no rate")
        elif total is None:
            rates.append(rate)
        else:
            found, said = _run(path, head, wanted, rate, (first, number))
            facts.append(found)
            remarks |= dict.fromkeys(said)
            head, rates, first = {}, [], 0
    if not facts and rates:
        found, said = _run(path, head, wanted, fmean(rates), (first, last))
        facts.append(found)
        remarks |= dict.fromkeys([*said, "There is no total: the rate is the mean of the steps shown."])
    if not facts:
        raise UserError(
            "output of tf_cnn_benchmarks with images/sec",
            f"none in {shown(path.name)}",
            "Take a run that ended.",
        )
    return Reading(tuple(facts), tuple(remarks), tuple(skipped))


def _look(line: str, head: dict[str, str]) -> None:
    for name, pattern in (("devices", _DEVICES), ("batch", _BATCH), ("each", _EACH)):
        if found := pattern.match(line):
            head[name] = found[1]
    if found := _NAMED.match(line):
        head[found[1].lower()] = shown(found[2])


def _run(
    path: Path, head: Mapping[str, str], wanted: Wanted, rate: float, placed: tuple[int, int]
) -> tuple[Facts, list[str]]:
    devices = [name for name in head.get("devices", "").split(",") if name.strip()]
    strategy = "horovod" if "horovod" in head.get("devices", "") + head.get("variables", "") else None
    run, remarks = run_of(path, wanted, strategy or head.get("variables"), len(devices) or None)
    if "synthetic" in head.get("dataset", ""):
        remarks.append("Its data are synthetic: nothing was read, so the rate is that of computing alone.")
    batch = int(head["batch"]) if "batch" in head and len(head["batch"]) < 10 else None
    each = int(head["each"]) if "each" in head and len(head["each"]) < 10 else None
    facts = Facts(
        Source(path.name, placed, "tf_cnn_benchmarks"),
        workers=run.workers, strategy=run.strategy, seed=run.seed, throughput=rate,
        global_batch=batch or None, per_worker_batch=each or None,
    )  # fmt: skip
    return facts, remarks


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


READER = Reader("tf_cnn_benchmarks", _recognises, _read, "its output")
