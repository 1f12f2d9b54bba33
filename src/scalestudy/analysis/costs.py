"""What a row cost: utilisation, memory, energy, hours, bytes moved, and the share of its devices' peak.

Each is a mean over the row's runs, and blank as soon as one of them has not told it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from scalestudy.analysis.gpus import energy_of, gpu_memory_of, gpu_percent_of, whole
from scalestudy.analysis.means import largest_of, mean_of, sum_of
from scalestudy.analysis.peaks import Peak, peak_of
from scalestudy.analysis.runs import Run, sense_of
from scalestudy.study.strategies import is_timed

JOULES = 3600.0
"""Of a watt-hour."""


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
WORDS = ("energy_of", "unmeasured")
"""Columns that are texts."""


def record_of(costs: Costs) -> dict[str, Any]:
    """Its values by column."""
    return {name: getattr(costs, name) for name in COLUMNS}


def costs_of(runs: Sequence[Run], largest_batch: int | None = None) -> Costs:
    """What the runs of a row cost, in the mean; `largest_batch` is known from other rows too."""
    results = [run.result for run in runs]
    gpu, cpu = energy_of(runs), _node_mean(runs, "cpu_joules")
    watt_hours = sum(known) / JOULES if (known := [each for each in (gpu, cpu) if each is not None]) else None
    names = [name for name, value in (("gpus", gpu), ("cpus", cpu)) if value is not None]
    flops, peak = mean_of(result.flops_per_sample for result in results), peak_of(runs)
    rate = mean_of(result.throughput for result in results) if is_timed(results[0].implementation) else None
    reached = None if flops is None or rate is None else flops * rate
    devices = _devices(runs)
    return Costs(
        gpu_percent=gpu_percent_of(runs),
        gpu_joules=gpu,
        cpu_percent=mean_of(mean_of(result.cpu_percent) for result in results),
        peak_memory_bytes=largest_of(largest_of(result.peak_memory_bytes) for result in results),
        gpu_memory_bytes=gpu_memory_of(runs),
        cpu_joules=cpu,
        watt_hours=watt_hours,
        energy_of=" + ".join(names) or None,
        watt_hours_per_quality=_per_quality(runs, watt_hours),
        node_hours=mean_of(_hours(run, len(run.result.nodes) or None) for run in runs),
        device_hours=mean_of(_hours(run, devices) for run in runs),
        network_sent_bytes=_node_mean(runs, "sent_bytes"),
        network_received_bytes=_node_mean(runs, "received_bytes"),
        loopback_bytes=_node_mean(runs, "loopback_bytes"),
        read_bytes=_process_mean(runs, "read_bytes"),
        written_bytes=_process_mean(runs, "written_bytes"),
        flops_per_sample=flops,
        flops_per_second=reached,
        peak_flops_per_second=peak.value,
        mfu=reached / (devices * peak.value) if reached is not None and peak.value else None,
        unmeasured=_why(runs, peak, flops),
        largest_batch=largest_batch,
    )


def _devices(runs: Sequence[Run]) -> int:
    """Devices that computed: one a worker, save where all workers are computed on one in turn."""
    result = runs[0].result
    return result.workers if is_timed(result.implementation) else 1


def _hours(run: Run, count: int | None) -> float | None:
    wall = run.result.wall_seconds
    return None if count is None or wall is None else count * wall / 3600


def _node_mean(runs: Sequence[Run], name: str) -> float | None:
    return mean_of(
        sum_of(getattr(node, name) for node in run.result.nodes) if whole(run) else None for run in runs
    )


def _process_mean(runs: Sequence[Run], name: str) -> float | None:
    return mean_of(
        sum_of(getattr(use, name) for use in run.result.processes) if whole(run) else None for run in runs
    )


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
    if not all(map(whole, runs)):
        reasons["energy and bytes: of a resumed run only the last process is known"] = None
    uncounted = sorted({name for run in runs for name in run.result.flops_uncounted})
    if uncounted:
        reasons[f"flops_per_sample: of {', '.join(uncounted)} the products are not counted"] = None
    if flops is not None and peak.reason:
        reasons[f"mfu: {peak.reason}"] = None
    return "; ".join(reasons) or None
