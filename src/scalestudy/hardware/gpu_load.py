"""How busy GPUs are, how full, and what they draw, as NVML says."""

from collections.abc import Sequence
from typing import NamedTuple

from scalestudy.hardware.nvml import Handle, Library, ask, library


class Load(NamedTuple):
    """One look at one GPU. What NVML does not tell is None.

    Attributes:
        busy: Share of the last moment (1/6 s to 1 s, by the card) in which something was computed, in per
            cent; not told of MIG instances, nor of GPUs that are divided.
        memory: Bytes in use on it, by whatever process.
        power: Watts drawn; of many cards the mean of the last second.
        energy: Joules drawn since the driver was loaded, where the card counts them (from Volta on).
        total: Bytes of memory that it has.
        traffic: Share of that moment in which its memory was read or written, in per cent; told as `busy` is.
    """

    busy: float | None = None
    memory: int | None = None
    power: float | None = None
    energy: float | None = None
    total: int | None = None
    traffic: float | None = None


class GpuLoad:
    """Looks at some GPUs, again and again. One that cannot be asked does not lose the others.

    Args:
        names: Their UUIDs.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._nvml = library() if names else None
        self._handles = [
            None if self._nvml is None else ask(self._nvml, "nvmlDeviceGetHandleByUUID", name)
            for name in names
        ]

    def look(self) -> list[Load]:
        """What each of them tells now, in the order of their names."""
        return [
            Load() if self._nvml is None or handle is None else _load(self._nvml, handle)
            for handle in self._handles
        ]


def _load(nvml: Library, handle: Handle) -> Load:
    rates = ask(nvml, "nvmlDeviceGetUtilizationRates", handle)
    memory = ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    milliwatts = ask(nvml, "nvmlDeviceGetPowerUsage", handle)
    millijoules = ask(nvml, "nvmlDeviceGetTotalEnergyConsumption", handle)
    return Load(
        None if rates is None else float(rates.gpu),
        None if memory is None else int(memory.used),
        None if milliwatts is None else milliwatts / 1e3,
        None if millijoules is None else millijoules / 1e3,
        None if memory is None else int(memory.total),
        None if rates is None else float(rates.memory),
    )
