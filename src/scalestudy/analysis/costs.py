"""What a row cost: utilisation, memory, energy, hours, bytes moved, and the share of its devices' peak.

Each is a mean over the row's runs, and blank as soon as one of them has not told it.

The largest per-worker batch that would still fit is estimated from runs of several batch sizes. What a batch
holds (its activations) grows with it, the rest (weights, optimizer, the framework) does not: memory is a line
in the batch size, fitted by least squares, and ends where the device's memory does. On GPUs it is what the
framework had given to tensors, on CPUs a process's resident memory, against its share of the node's.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import floor
from statistics import fmean
from typing import Literal

from scalestudy.analysis.peaks import Peak, peak_of
from scalestudy.analysis.runs import Key, Run, sense_of
from scalestudy.study.strategies import is_timed

JOULES = 3600.0
"""Of a watt-hour."""
BATCH_SIZE = "train.batch_size"


@dataclass(frozen=True)
class Costs:
    """What a row cost, under the names of the table's columns."""

    gpu_percent: float | None
    """Mean utilisation of its GPUs."""
    gpu_joules: float | None
    """Energy of all its GPUs over the training time."""
    cpu_percent: float | None
    """Mean utilisation of the cores granted to its processes."""
    peak_memory_bytes: float | None
    """Resident memory of its largest process."""
    gpu_memory_bytes: float | None
    """Memory given to tensors on its fullest GPU."""
    cpu_joules: float | None
    """Energy of the processors of its nodes over the training time, whoever used them."""
    watt_hours: float | None
    """Energy over the training time of all that could be counted: see `energy_of`."""
    energy_of: str | None
    """What `watt_hours` is of: "gpus", "cpus" or "gpus + cpus"."""
    watt_hours_per_quality: float | None
    """Watt-hours divided by the quality, of a metric in [0, 1] of which more is better."""
    node_hours: float | None
    """Nodes times hours from the start of the processes to the result."""
    device_hours: float | None
    """Devices times the same hours."""
    network_sent_bytes: float | None
    """Sent by its nodes over the training time, on their interfaces."""
    network_received_bytes: float | None
    loopback_bytes: float | None
    """Between processes of one node."""
    read_bytes: float | None
    """Fetched from storage over the training time, by all processes."""
    written_bytes: float | None
    flops_per_sample: float | None
    """Of a sample's forward and backward pass, as counted in the engine's graph."""
    flops_per_second: float | None
    """Reached by all devices together, in the steady epochs."""
    peak_flops_per_second: float | None
    """Of one device, in the arithmetic of the runs."""
    mfu: float | None
    """Model FLOP/s utilisation: reached, divided by the peak of all devices."""
    unmeasured: str | None
    """What is blank, and why, where it is known."""
    largest_batch: int | None
    """Per-worker batch that would still fit, estimated from the memory of runs of several batch sizes."""


COLUMNS = tuple(field.name for field in fields(Costs))


def costs_of(runs: Sequence[Run], largest_batch: int | None = None) -> Costs:
    """What the runs of a row cost, in the mean; `largest_batch` is known from other rows too."""
    results = [run.result for run in runs]
    gpus = [use for result in results for use in result.gpus]
    energies = {"gpus": _total(runs, "gpus", "joules"), "cpus": _total(runs, "nodes", "cpu_joules")}
    counted = {name: joules for name, joules in energies.items() if joules is not None}
    watt_hours = sum(counted.values()) / JOULES if counted else None
    flops, peak = mean_of(result.flops_per_sample for result in results), peak_of(runs)
    timed = is_timed(results[0].implementation)
    rate = mean_of(result.throughput for result in results) if timed else None
    reached = None if flops is None or rate is None else flops * rate
    devices = results[0].workers if timed else 1  # all virtual workers are computed on one in turn
    return Costs(
        gpu_percent=mean_of(use.percent for use in gpus),
        gpu_joules=energies["gpus"],
        cpu_percent=mean_of(mean_of(result.cpu_percent) for result in results),
        peak_memory_bytes=largest_of(largest_of(result.peak_memory_bytes) for result in results),
        gpu_memory_bytes=largest_of(use.allocated_bytes for use in gpus),
        cpu_joules=energies["cpus"],
        watt_hours=watt_hours,
        energy_of=" + ".join(counted) or None,
        watt_hours_per_quality=_per_quality(runs, watt_hours),
        node_hours=mean_of(_hours(run, len(run.result.nodes) or None) for run in runs),
        device_hours=mean_of(_hours(run, devices) for run in runs),
        network_sent_bytes=_total(runs, "nodes", "sent_bytes"),
        network_received_bytes=_total(runs, "nodes", "received_bytes"),
        loopback_bytes=_total(runs, "nodes", "loopback_bytes"),
        read_bytes=_total(runs, "processes", "read_bytes"),
        written_bytes=_total(runs, "processes", "written_bytes"),
        flops_per_sample=flops,
        flops_per_second=reached,
        peak_flops_per_second=peak.value,
        mfu=reached / (devices * peak.value) if reached is not None and peak.value else None,
        unmeasured=_why(runs, peak, flops),
        largest_batch=largest_batch,
    )


def _known(values: Iterable[float | None]) -> list[float]:
    """The values; none if one of them is unknown."""
    every = list(values)
    known = [value for value in every if value is not None]
    return known if len(known) == len(every) else []


def mean_of(values: Iterable[float | None]) -> float | None:
    """Their mean; None if there are none, or if one of them is unknown."""
    known = _known(values)
    return fmean(known) if known else None


def largest_of(values: Iterable[float | None]) -> float | None:
    """The largest; None likewise."""
    return max(_known(values), default=None)


def _total(runs: Sequence[Run], of: Literal["gpus", "nodes", "processes"], name: str) -> float | None:
    """Mean over runs of the sum over their devices, nodes or processes.

    Blank for a resumed run that knows its last process only.
    """
    sums = []
    for run in runs:
        known = _known(getattr(use, name) for use in getattr(run.result, of))
        sums.append(sum(known) if known and _is_whole(run) else None)
    return mean_of(sums)


def _is_whole(run: Run) -> bool:
    """Whether what a run says it used is of all of its processes, those before a restart included."""
    return not run.result.restarts or run.result.usage_of == "run"


def _hours(run: Run, count: int | None) -> float | None:
    wall = run.result.wall_seconds
    return None if count is None or wall is None else count * wall / 3600


def _per_quality(runs: Sequence[Run], watt_hours: float | None) -> float | None:
    """Blank where quality is no share of something good, or is zero: a quotient would mean nothing."""
    sense = sense_of(runs)
    if watt_hours is None or sense.better != "higher" or not sense.bounded:
        return None
    quality = mean_of(run.result.quality for run in runs)
    return watt_hours / quality if quality is not None and quality > 0 else None


def _why(runs: Sequence[Run], peak: Peak, flops: float | None) -> str | None:
    """Reasons of blanks, each once."""
    reasons = {
        f"{name}: {why}": None for run in runs for rank in run.ranks for name, why in rank.unmeasured.items()
    }
    if not all(map(_is_whole, runs)):
        reasons["energy and bytes: of a resumed run only the last process is known"] = None
    uncounted = sorted({name for run in runs for name in run.result.flops_uncounted})
    if uncounted:
        reasons[f"flops_per_sample: of {', '.join(uncounted)} the products are not counted"] = None
    if flops is not None and peak.reason:
        reasons[f"mfu: {peak.reason}"] = None
    return "; ".join(reasons) or None


def largest_batches(groups: Mapping[Key, Sequence[Run]]) -> dict[Key, int]:
    """Of each row that differs from others in nothing but its batch size; others have none."""
    alike: dict[Key, list[Key]] = {}
    for key in groups:
        swept = {name: value for name, value in key.swept.items() if name != BATCH_SIZE}
        rest = Key(key.strategy, key.workers, json.dumps(swept, sort_keys=True, default=str))
        alike.setdefault(rest, []).append(key)
    batches: dict[Key, int] = {}
    for keys in alike.values():
        if (batch := largest_batch([run for key in keys for run in groups[key]])) is not None:
            batches |= dict.fromkeys(keys, batch)
    return batches


def largest_batch(runs: Sequence[Run]) -> int | None:
    """The same of some runs; None with fewer than two batch sizes, or where memory grows with none."""
    known = [
        (batch, used, limit)
        for batch, (used, limit) in ((run.result.per_worker_batch, _memory(run)) for run in runs)
        if batch and used and limit
    ]
    if len(known) < len(runs) or len({batch for batch, _, _ in known}) < 2:
        return None
    mean_batch, mean_used = fmean(batch for batch, _, _ in known), fmean(used for _, used, _ in known)
    spread = sum((batch - mean_batch) ** 2 for batch, _, _ in known)
    slope = sum((batch - mean_batch) * (used - mean_used) for batch, used, _ in known) / spread
    fixed = mean_used - slope * mean_batch
    limit = min(limit for _, _, limit in known)
    if slope <= 0 or fixed >= limit:
        return None
    return max(floor((limit - fixed) / slope), *(batch for batch, used, _ in known if used <= limit))


def _memory(run: Run) -> tuple[float | None, float | None]:
    """Bytes used, and bytes there are, where they are scarcest."""
    if gpus := run.result.gpus:
        limits = _known(use.memory_total_bytes for use in gpus)
        return largest_of(use.allocated_bytes for use in gpus), min(limits, default=None)
    limits = _known(rank.memory_limit_bytes for rank in run.ranks)
    if not limits:
        return None, None
    processes = max(Counter(rank.host for rank in run.ranks).values())
    return largest_of(run.result.peak_memory_bytes), min(limits) / processes
