"""A fake pynvml for machines with any GPUs: with MIG, mixed, without permission, lost, without counters.

Errors, constants and structures are those of pynvml; a test compares the functions' names and arguments with
it. In this process use the fixture `nvml(card, …)`; for other processes, `written` creates a folder for
PYTHONPATH.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml as real

GIB = 2**30
NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = (
    real.NVML_ERROR_NOT_SUPPORTED,
    real.NVML_ERROR_NO_PERMISSION,
    real.NVML_ERROR_NOT_FOUND,
)
DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND = (
    real.NVML_ERROR_DRIVER_NOT_LOADED,
    real.NVML_ERROR_LIBRARY_NOT_FOUND,
)
GPU_IS_LOST, UNKNOWN = real.NVML_ERROR_GPU_IS_LOST, real.NVML_ERROR_UNKNOWN
NVMLError = real.NVMLError
BUSY = "nvmlDeviceGetUtilizationRates"
OF_WHOLE_GPUS = (BUSY, "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption")
"""Functions that NVML does not support for a MIG instance; the first not for a GPU in MIG mode either."""


@dataclass
class Card:
    """One GPU or one MIG instance.

    Attributes:
        memory: Total bytes.
        used: Bytes in use.
        busy: Utilisation in per cent.
        power: Milliwatts; None if the GPU does not report it.
        energy: Counter in millijoules since the driver was loaded; None if there is none.
        instances: MIG instances, None for an empty slot; None for a GPU without MIG.
        ids: GPU instance and compute instance of a MIG instance.
        processes: Process ids that compute on it.
        fails: Error by function name ("*": every function).
    """

    uuid: str
    name: str = "NVIDIA H100"
    memory: int = 80 * GIB
    used: int = GIB
    capability: tuple[int, int] = (9, 0)
    busy: int = 50
    power: int | None = 300_000
    energy: int | None = 0
    cpus: tuple[int, ...] = (0b11, 0)
    instances: "list[Card | None] | None" = None
    ids: tuple[int, int] = (1, 0)
    processes: tuple[int, ...] = ()
    fails: dict[str, int] = field(default_factory=dict)


class FakeNvml:
    """The pynvml functions that the project calls. A handle is a `Card`.

    Args:
        cards: GPUs in NVML's order.
        driver: Driver version; None for a machine without a driver.
        cuda: Newest CUDA version that the driver supports, as 12040 for 12.4.
        old: Whether strings are bytes, as in pynvml before 11.5.
        missing: Error of `nvmlInit` without a driver.
    """

    def __init__(
        self,
        *cards: Card,
        driver: str | None = "580.1",
        cuda: int = 13000,
        old: bool = False,
        missing: int = LIBRARY_NOT_FOUND,
    ) -> None:
        self.cards, self.driver, self.cuda = list(cards), driver, cuda
        self._old, self._missing = old, missing
        self.asked: list[tuple[str, str]] = []
        """Called functions, each with the UUID of the GPU."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("NVML_", "NVMLError")):
            return getattr(real, name)
        raise AttributeError(f"the stand-in for pynvml has no {name}")

    def _text(self, text: str) -> Any:
        return text.encode() if self._old else text

    def _ask(self, card: Card, function: str) -> Card:
        self.asked.append((function, card.uuid))
        error = card.fails.get(function, card.fails.get("*"))
        divided = function == BUSY and card.instances is not None
        if error is None and (
            divided or (function in OF_WHOLE_GPUS and self._whole_of(card))
        ):
            error = NOT_SUPPORTED
        if error is not None:
            raise NVMLError(error)
        return card

    def _whole_of(self, part: Card) -> Card | None:
        return next(
            (
                card
                for card in self.cards
                if any(part is each for each in card.instances or [])
            ),
            None,
        )

    def _number(self, card: Card, function: str, value: int | None) -> int:
        self._ask(card, function)
        if value is None:
            raise NVMLError(NOT_SUPPORTED)
        return value

    def nvmlInit(self) -> None:
        if self.driver is None:
            raise NVMLError(self._missing)

    def nvmlShutdown(self) -> None:
        pass

    def nvmlSystemGetDriverVersion(self) -> Any:
        return self._text(self.driver or "")

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return self.cuda

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        return self._ask(self.cards[index], "nvmlDeviceGetHandleByIndex")

    def nvmlDeviceGetHandleByUUID(self, uuid: str | bytes) -> Card:
        wanted = uuid.decode() if isinstance(uuid, bytes) else uuid
        parts = [part for card in self.cards for part in card.instances or [] if part]
        for card in [*self.cards, *parts]:
            if card.uuid == wanted:
                return self._ask(card, "nvmlDeviceGetHandleByUUID")
        raise NVMLError(NOT_FOUND)

    def nvmlDeviceGetUUID(self, handle: Card) -> Any:
        return self._text(self._ask(handle, "nvmlDeviceGetUUID").uuid)

    def nvmlDeviceGetName(self, handle: Card) -> Any:
        return self._text(self._ask(handle, "nvmlDeviceGetName").name)

    def nvmlDeviceGetMemoryInfo(self, handle: Card) -> Any:
        card = self._ask(handle, "nvmlDeviceGetMemoryInfo")
        return real.c_nvmlMemory_t(
            total=card.memory, free=card.memory - card.used, used=card.used
        )

    def nvmlDeviceGetCudaComputeCapability(self, handle: Card) -> tuple[int, int]:
        return self._ask(handle, "nvmlDeviceGetCudaComputeCapability").capability

    def nvmlDeviceGetCpuAffinity(self, handle: Card, cpuSetSize: int) -> Any:
        words = self._ask(handle, "nvmlDeviceGetCpuAffinity").cpus[:cpuSetSize]
        return (real.c_ulonglong * cpuSetSize)(*words)

    def nvmlDeviceGetUtilizationRates(self, handle: Card) -> Any:
        busy = self._ask(handle, BUSY).busy
        return real.c_nvmlUtilization_t(gpu=busy, memory=busy // 2)

    def nvmlDeviceGetPowerUsage(self, handle: Card) -> int:
        return self._number(handle, "nvmlDeviceGetPowerUsage", handle.power)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Card) -> int:
        return self._number(
            handle, "nvmlDeviceGetTotalEnergyConsumption", handle.energy
        )

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Card) -> list[Any]:
        card = self._ask(handle, "nvmlDeviceGetComputeRunningProcesses")
        return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in card.processes]

    def nvmlDeviceGetMigMode(self, device: Card) -> list[int]:
        self._ask(device, "nvmlDeviceGetMigMode")
        return [int(device.instances is not None)] * 2

    def nvmlDeviceGetMaxMigDeviceCount(self, device: Card) -> int:
        return len(device.instances or [])

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Card, index: int) -> Card:
        part = (device.instances or [])[index]
        if part is None:
            raise NVMLError(NOT_FOUND)
        return part

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, migDevice: Card) -> Card:
        whole = self._whole_of(migDevice)
        if whole is None:
            raise NVMLError(NOT_FOUND)
        return whole

    def nvmlDeviceGetGpuInstanceId(self, device: Card) -> int:
        return device.ids[0]

    def nvmlDeviceGetComputeInstanceId(self, device: Card) -> int:
        return device.ids[1]


def cards(count: int, **fields: Any) -> list[Card]:
    """GPUs of one node with UUIDs GPU-a0, GPU-b1, …"""
    return [
        Card(
            uuid=f"GPU-{chr(97 + index)}{index}",
            **{"busy": 10 * index, **fields},
        )
        for index in range(count)
    ]


def mixed() -> list[Card]:
    """A node of different GPUs: a V100 without energy counter, an H100 with MIG, an L4, and a lost one."""
    part = [
        Card(uuid=f"MIG-{n}", name="H100 MIG 3g.40gb", memory=40 * GIB, ids=(n, 0))
        for n in (1, 2)
    ]
    volta, hopper, ada, lost = cards(4)
    volta.name, volta.memory, volta.capability, volta.energy = (
        "Tesla V100-SXM2-32GB",
        32 * GIB,
        (7, 0),
        None,
    )
    hopper.instances = [part[0], None, part[1]]
    ada.name, ada.memory, ada.capability = "NVIDIA L4", 24 * GIB, (8, 9)
    lost.fails = {"*": GPU_IS_LOST}
    return [volta, hopper, ada, lost]


def written(folder: Path, cards: Sequence[Card], **fields: Any) -> str:
    """Create a folder that, first on PYTHONPATH, makes another process find these GPUs.

    Args:
        folder: Path of the folder.
        cards: GPUs in NVML's order.
        fields: Further arguments of `FakeNvml`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pynvml.py").write_text(
        "import sys\n"
        f"sys.path.remove({str(folder)!r})\n"
        "del sys.modules['pynvml']\n"
        f"sys.path.append({str(Path(__file__).parent)!r})\n"
        "import fake_nvml\n"
        "from fake_nvml import Card\n"
        f"sys.path.insert(0, {str(folder)!r})\n"
        f"sys.modules['pynvml'] = fake_nvml.FakeNvml(*{list(cards)!r}, **{fields!r})\n"
    )
    return str(folder)
