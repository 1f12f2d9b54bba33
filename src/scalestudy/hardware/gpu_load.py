"""How busy GPUs are: samples of their utilisation, memory, power and energy."""

from collections.abc import Sequence
from typing import NamedTuple

from scalestudy.hardware.nvml import Handle, Library, ask, library


class Load(NamedTuple):
    """A sample of a GPU's state. Values that NVML does not provide are None.

    Attributes:
        busy: Percentage of the last sampling period (1/6 s to 1 s, depending on the card) in which a kernel
            ran; not available with MIG.
        memory: Bytes in use, by all processes.
        power: Watts drawn; on many cards the mean of the last second.
        energy: Joules drawn since the driver was loaded; available from Volta on.
        total: Total bytes of memory.
        traffic: Percentage of that period in which memory was read or written; not available with MIG.
    """

    busy: float | None = None
    memory: int | None = None
    power: float | None = None
    energy: float | None = None
    total: int | None = None
    traffic: float | None = None


class GpuLoad:
    """Samples the state of the GPUs with these UUIDs. A GPU that fails does not affect the others."""

    def __init__(self, names: Sequence[str]) -> None:
        self._nvml: Library | None = None
        # Without GPUs, the driver is not loaded.
        if names:
            self._nvml = library()
        self._handles: list[Handle | None] = []
        for name in names:
            handle = None
            if self._nvml is not None:
                # By UUID: names in CUDA_VISIBLE_DEVICES may be no numbers.
                handle = ask(self._nvml, "nvmlDeviceGetHandleByUUID", name)
            self._handles.append(handle)

    def look(self) -> list[Load]:
        """Return a sample of each GPU, in the order of `names`."""
        samples = []
        for handle in self._handles:
            if handle is None:
                samples.append(Load())
            else:
                samples.append(_load(self._nvml, handle))
        return samples


def _load(nvml: Library, handle: Handle) -> Load:
    load = Load()
    rates = ask(nvml, "nvmlDeviceGetUtilizationRates", handle)
    if rates is not None:
        load = load._replace(busy=float(rates.gpu), traffic=float(rates.memory))
    memory = ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    if memory is not None:
        load = load._replace(memory=int(memory.used), total=int(memory.total))
    # NVML answers in thousandths.
    milliwatts = ask(nvml, "nvmlDeviceGetPowerUsage", handle)
    if milliwatts is not None:
        load = load._replace(power=milliwatts / 1e3)
    millijoules = ask(nvml, "nvmlDeviceGetTotalEnergyConsumption", handle)
    if millijoules is not None:
        load = load._replace(energy=millijoules / 1e3)
    return load
