"""What a row cost: utilisation, memory, energy, hours, and the share of its devices' peak.

Values are means over the row's runs, memory the largest of them; blank if any run did not record a value.
Peaks are listed in `device_peaks.toml`; that of a device not listed there is unknown.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from statistics import fmean
from typing import Literal, NamedTuple

from scalestudy.analysis.measures import gpu_names
from scalestudy.analysis.runs import Run
from scalestudy.plugins.strategies import is_timed
from scalestudy.store.records import GpuUse

KINDS = {
    "float32": "float32",
    "tf32": "tf32",
    "mixed_float16": "float16",
    "mixed_bfloat16": "bfloat16",
}
"""Arithmetic of matrix products, by `train.precision`."""
TERA = 1e12
JOULES = 3600.0
"""Joules per watt-hour."""


@dataclass(frozen=True)
class UnlikePeaks:
    """Runs that computed on GPUs of several names."""

    names: frozenset[str]


@dataclass(frozen=True)
class UnknownPeak:
    """A device of which no peak in an arithmetic is known."""

    name: str
    arithmetic: str


NoPeak = Literal["cpus", "arithmetic-unknown"] | UnlikePeaks | UnknownPeak
"""Why the peak of the devices of a row is unknown."""


class Peak(NamedTuple):
    """FLOP/s of one device, or the reason why they are unknown."""

    value: float | None = None
    reason: NoPeak | None = None


@dataclass(frozen=True)
class Unrecorded:
    """A quantity that a worker could not measure, and the reason that it recorded."""

    name: str
    reason: str


@dataclass(frozen=True)
class Uncounted:
    """Layers whose products are not among the floating-point operations."""

    layers: frozenset[str]


Unmeasured = Unrecorded | Uncounted | Literal["energy-before-restart"] | NoPeak
"""Why a cost is missing."""


def peak_of(runs: Sequence[Run]) -> Peak:
    """Peak of the runs' devices in the runs' arithmetic."""
    names = gpu_names(runs)
    if not names:
        return Peak(reason="cpus")
    # Their peaks add up to no number by which one device's use could be judged.
    if len(names) > 1:
        return Peak(reason=UnlikePeaks(names))
    kinds = {KINDS.get(run.result.precision or "") for run in runs}
    kind = kinds.pop()
    # No kind is left if all runs computed alike.
    if kinds or kind is None:
        return Peak(reason="arithmetic-unknown")
    (name,) = names
    value = device_peak(name, kind)
    if not value:
        return Peak(reason=UnknownPeak(name, kind))
    return Peak(value)


def device_peak(name: str, kind: str) -> float | None:
    """Dense FLOP/s of a GPU as its vendor states them; None for MIG instances.

    `name` is the driver's name, such as "NVIDIA A100-SXM4-80GB"; `kind` is one of the values of `KINDS`.
    """
    value = _entry(name).get(kind)
    if not isinstance(value, int | float):
        return None
    return float(value) * TERA


def may_have_tf32(name: str) -> bool:
    """Whether a GPU supports TensorFloat-32, by the driver's name for it; True for unknown GPUs."""
    entry = _entry(name)
    return not entry or "tf32" in entry


def _entry(name: str) -> Mapping[str, object]:
    """The entry of a device in the list of peaks; empty if there is none."""
    # Drivers name the vendor and the brand in some versions and not in others.
    short = re.sub(r"^(NVIDIA |Tesla )+", "", name)
    for row in _table():
        if re.fullmatch(str(row["name"]), short):
            return row
    return {}


@cache
def _table() -> list[Mapping[str, object]]:
    text = (
        resources.files("scalestudy.analysis").joinpath("device_peaks.toml").read_text()
    )
    devices: list[Mapping[str, object]] = tomllib.loads(text)["device"]
    return devices


@dataclass(frozen=True)
class Costs:
    """What a row cost, under the names of the table's columns.

    Attributes:
        gpu_percent: Share of the training time in which a kernel of any size ran on the GPUs (NVML, once
            a second).
        gpu_joules: Energy of all GPUs over the training time (NVML's counter, or its power once a second).
        cpu_percent: Use of the cores granted to the processes.
        peak_memory_bytes: Resident memory of the largest process, including mapped files.
        gpu_memory_bytes: Peak memory of tensors, on the GPU with the most.
        watt_hours: The same energy in watt-hours.
        node_hours: Nodes times the hours from the start of the processes to the result.
        device_hours: Devices times the same hours.
        flops_per_sample: Floating-point operations of a sample's forward and backward pass.
        flops_per_second: Operations per second of all devices together, in the steady epochs.
        peak_flops_per_second: Peak of one device in the run's arithmetic, from the vendor's data sheet.
        mfu: Model FLOP/s utilisation: operations per second divided by the peak of all devices.
        unmeasured: Which values are missing and why, where known.
    """

    gpu_percent: float | None
    gpu_joules: float | None
    cpu_percent: float | None
    peak_memory_bytes: float | None
    gpu_memory_bytes: float | None
    watt_hours: float | None
    node_hours: float | None
    device_hours: float | None
    flops_per_sample: float | None
    flops_per_second: float | None
    peak_flops_per_second: float | None
    mfu: float | None
    unmeasured: tuple[Unmeasured, ...]


def cost_columns() -> tuple[str, ...]:
    """Names of the table's columns on costs, in order."""
    return tuple(field.name for field in fields(Costs))


def costs_of(runs: Sequence[Run]) -> Costs:
    """Mean cost of a row's runs."""
    results = [run.result for run in runs]
    gpus: list[GpuUse] = []
    for result in results:
        gpus += result.gpus
    timed = is_timed(results[0].implementation)
    devices = results[0].workers
    if not timed:
        # One device computes all virtual workers in turn.
        devices = 1
    joules = _gpu_joules(runs)
    watt_hours = None
    if joules is not None:
        watt_hours = joules / JOULES
    flops = mean_of([result.flops_per_sample for result in results])
    throughput = mean_of([result.throughput for result in results])
    flops_per_second = None
    if timed and flops is not None and throughput is not None:
        flops_per_second = flops * throughput
    peak = peak_of(runs)
    mfu = None
    if flops_per_second is not None and peak.value:
        mfu = flops_per_second / (devices * peak.value)
    cpu_percents = []
    memories = []
    node_hours = []
    device_hours = []
    for run in runs:
        cpu_percents.append(mean_of(run.result.cpu_percent))
        memories.append(_largest(run.result.peak_memory_bytes))
        node_hours.append(_hours(run, len(run.result.nodes) or None))
        device_hours.append(_hours(run, devices))
    return Costs(
        gpu_percent=mean_of([use.percent for use in gpus]),
        gpu_joules=joules,
        cpu_percent=mean_of(cpu_percents),
        peak_memory_bytes=_largest(memories),
        gpu_memory_bytes=_largest([use.allocated_bytes for use in gpus]),
        watt_hours=watt_hours,
        node_hours=mean_of(node_hours),
        device_hours=mean_of(device_hours),
        flops_per_sample=flops,
        flops_per_second=flops_per_second,
        peak_flops_per_second=peak.value,
        mfu=mfu,
        unmeasured=tuple(_unmeasured(runs, peak, flops)),
    )


def _complete(values: Iterable[float | None]) -> list[float]:
    """Return the values, or none if any of them is unknown."""
    numbers = []
    for value in values:
        # A mean over the others would be of other runs than its neighbours in the table.
        if value is None:
            return []
        numbers.append(value)
    return numbers


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean; None if there are no values or any of them is unknown."""
    numbers = _complete(values)
    if not numbers:
        return None
    return fmean(numbers)


def _largest(values: Iterable[float | None]) -> float | None:
    return max(_complete(values), default=None)


def _gpu_joules(runs: Sequence[Run]) -> float | None:
    """Mean over runs of the energy of their GPUs.

    None if a run was resumed and recorded only its last process.
    """
    sums: list[float | None] = []
    for run in runs:
        numbers = _complete([use.joules for use in run.result.gpus])
        if numbers and _is_whole(run):
            sums.append(sum(numbers))
        else:
            sums.append(None)
    return mean_of(sums)


def _is_whole(run: Run) -> bool:
    """Whether a run recorded the usage of all its processes, including those before a restart."""
    return not run.result.restarts or run.result.usage_of == "run"


def _hours(run: Run, count: int | None) -> float | None:
    wall = run.result.wall_seconds
    if count is None or wall is None:
        return None
    return count * wall / 3600


def _unmeasured(
    runs: Sequence[Run],
    peak: Peak,
    flops: float | None,
) -> list[Unmeasured]:
    """Why costs are missing, each reason once."""
    reasons: list[Unmeasured] = []
    for run in runs:
        for rank in run.ranks:
            for name, why in rank.unmeasured.items():
                reasons.append(Unrecorded(name, why))
    if not all(map(_is_whole, runs)):
        reasons.append("energy-before-restart")
    uncounted: set[str] = set()
    for run in runs:
        uncounted.update(run.result.flops_uncounted)
    if uncounted:
        reasons.append(Uncounted(frozenset(uncounted)))
    if flops is not None and peak.reason:
        reasons.append(peak.reason)
    # Every rank of every run may have the same reason.
    return list(dict.fromkeys(reasons))
