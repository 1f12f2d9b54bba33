"""Queries of NVIDIA's management library (NVML), in which a failed query does not affect the others."""

from collections.abc import Sequence
from typing import Any, NamedTuple

Library = Any
"""The module `pynvml`, or an object with the same functions."""
Handle = Any


def library() -> Library | None:
    """Initialize NVML and return it; None without a driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def unavailable() -> str:
    """Return NVML's message why it cannot be used; "" if it can."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return str(error)
    return ""


def ask(nvml: Library, function: str, *arguments: Any, otherwise: Any = None) -> Any:
    """Return the result of a function, or `otherwise` if the driver, device or pynvml does not support it."""
    try:
        return getattr(nvml, function)(*arguments)
    except (nvml.NVMLError, AttributeError):
        return otherwise


def text(raw: bytes | str) -> str:
    """Return a string of pynvml as text; older releases return bytes."""
    return raw.decode() if isinstance(raw, bytes) else raw


def driver_version() -> str | None:
    """Return the version of the GPU driver; None without one."""
    nvml = library()
    version = None if nvml is None else ask(nvml, "nvmlSystemGetDriverVersion")
    return None if version is None else text(version)


def driver_cuda() -> tuple[int, int] | None:
    """Return the newest CUDA version that the driver supports, such as (12, 4); None if unknown."""
    nvml = library()
    number = None if nvml is None else ask(nvml, "nvmlSystemGetCudaDriverVersion")
    return None if number is None else (int(number) // 1000, int(number) % 1000 // 10)


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
        self._nvml = library() if names else None
        self._handles = [
            None if self._nvml is None else ask(self._nvml, "nvmlDeviceGetHandleByUUID", name)
            for name in names
        ]

    def look(self) -> list[Load]:
        """Return a sample of each GPU, in the order of `names`."""
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
