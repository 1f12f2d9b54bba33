"""NVIDIA's management library (NVML): opened here, and asked without one refusal losing the other answers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

Library = Any
"""The module `pynvml`, or what answers like it."""
Handle = Any


def library() -> Library | None:
    """NVML, ready to be asked; None where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def unavailable() -> str:
    """Why NVML cannot be asked, in its own words; "" where it can."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return str(error)
    return ""


def ask(nvml: Library, function: str, *arguments: Any, otherwise: Any = None) -> Any:
    """The answer of one of its functions, or `otherwise` where the driver, the device or pynvml has none."""
    try:
        return getattr(nvml, function)(*arguments)
    except (nvml.NVMLError, AttributeError):
        return otherwise


def text(raw: bytes | str) -> str:
    """What older releases of pynvml give as bytes, and newer ones as text."""
    return raw.decode() if isinstance(raw, bytes) else raw


def driver_version() -> str | None:
    """Version of the GPU driver; None without one."""
    nvml = library()
    version = None if nvml is None else ask(nvml, "nvmlSystemGetDriverVersion")
    return None if version is None else text(version)


def driver_cuda() -> tuple[int, int] | None:
    """Newest version of CUDA that the driver serves, (12, 4); None where it does not say."""
    nvml = library()
    number = None if nvml is None else ask(nvml, "nvmlSystemGetCudaDriverVersion")
    return None if number is None else (int(number) // 1000, int(number) % 1000 // 10)


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
    """Looks at GPUs of these UUIDs, again and again. One that cannot be asked does not lose the others."""

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
        None if rates is None else float(rates.gpu), None if memory is None else int(memory.used),
        None if milliwatts is None else milliwatts / 1e3, None if millijoules is None else millijoules / 1e3,
        None if memory is None else int(memory.total), None if rates is None else float(rates.memory),
    )  # fmt: skip
