"""How busy GPUs are, as NVML says."""

from collections.abc import Sequence

from scalestudy.machine.nvml import ask, library


class GpuLoad:
    """Reads the utilisation of some GPUs, again and again; those that NVML cannot ask are left out.

    Args:
        uuids: Which.
    """

    def __init__(self, uuids: Sequence[str]) -> None:
        self._nvml = library() if uuids else None
        found = [ask(self._nvml, "nvmlDeviceGetHandleByUUID", uuid) for uuid in uuids if self._nvml]
        self._handles = [handle for handle in found if handle is not None]

    def percent(self) -> list[float]:
        """Share of the last moment in which something was computed, in per cent, of each that answers."""
        rates = [ask(self._nvml, "nvmlDeviceGetUtilizationRates", handle) for handle in self._handles]
        return [float(rate.gpu) for rate in rates if rate is not None]
