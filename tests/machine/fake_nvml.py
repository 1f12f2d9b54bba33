"""What answers like pynvml, for machines of any cards: with MIG, without permission, with a lost device.

Error numbers and names are those of nvml.h; a refusal raises what pynvml raises.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GIB = 2**30
NO_PERMISSION, NOT_FOUND, NOT_SUPPORTED, DRIVER_NOT_LOADED, GPU_IS_LOST, UNKNOWN = 4, 6, 3, 9, 15, 999


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


@dataclass
class Card:
    """One GPU, or one MIG instance: `fails` gives the error that a function answers with ("*": every one)."""

    uuid: str
    name: str = "NVIDIA H100"
    bus: str = "00000000:07:00.0"
    memory: int = 80 * GIB
    capability: tuple[int, int] = (9, 0)
    busy: int = 50
    cpus: tuple[int, ...] = (0b11, 0)
    numa: tuple[int, ...] = (0b1,)
    instances: "list[Card | None] | None" = None
    ids: tuple[int, int] = (1, 0)
    fails: dict[str, int] = field(default_factory=dict)
    links: dict[int, str] = field(default_factory=dict)


class FakeNvml:
    """The functions of pynvml that the project calls.

    Args:
        cards: In NVML's order.
        driver: Its version; None for a machine without one.
        levels: NVML's level of the nearest common ancestor of two cards, by their numbers.
    """

    NVMLError = NVMLError
    NVML_ERROR_NO_PERMISSION, NVML_ERROR_GPU_IS_LOST = NO_PERMISSION, GPU_IS_LOST
    NVML_DEVICE_MIG_ENABLE = NVML_FEATURE_ENABLED = 1
    NVML_NVLINK_MAX_LINKS = 18
    NVML_NVLINK_DEVICE_TYPE_SWITCH = 2

    def __init__(self, *cards: Card, driver: str | None = "580.1", levels: Any = None) -> None:
        self.cards, self.driver, self.levels = list(cards), driver, levels or {}

    def _ask(self, card: Card, function: str) -> Card:
        error = card.fails.get(function, card.fails.get("*"))
        if error is not None:
            raise NVMLError(error)
        return card

    def nvmlInit(self) -> None:
        if self.driver is None:
            raise NVMLError(DRIVER_NOT_LOADED)

    def nvmlSystemGetDriverVersion(self) -> str | None:
        return self.driver

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        return self._ask(self.cards[index], "nvmlDeviceGetHandleByIndex")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Card:
        parts = [part for card in self.cards for part in card.instances or [] if part]
        for card in [*self.cards, *parts]:
            if card.uuid == uuid:
                return self._ask(card, "nvmlDeviceGetHandleByUUID")
        raise NVMLError(NOT_FOUND)

    def nvmlDeviceGetUUID(self, card: Card) -> str:
        return self._ask(card, "nvmlDeviceGetUUID").uuid

    def nvmlDeviceGetName(self, card: Card) -> bytes:
        return self._ask(card, "nvmlDeviceGetName").name.encode()

    def nvmlDeviceGetPciInfo(self, card: Card) -> SimpleNamespace:
        return SimpleNamespace(busId=self._ask(card, "nvmlDeviceGetPciInfo").bus)

    def nvmlDeviceGetMemoryInfo(self, card: Card) -> SimpleNamespace:
        return SimpleNamespace(total=self._ask(card, "nvmlDeviceGetMemoryInfo").memory)

    def nvmlDeviceGetCudaComputeCapability(self, card: Card) -> tuple[int, int]:
        return self._ask(card, "nvmlDeviceGetCudaComputeCapability").capability

    def nvmlDeviceGetCpuAffinity(self, card: Card, words: int) -> tuple[int, ...]:
        return self._ask(card, "nvmlDeviceGetCpuAffinity").cpus

    def nvmlDeviceGetMemoryAffinity(self, card: Card, words: int, scope: int) -> tuple[int, ...]:
        return self._ask(card, "nvmlDeviceGetMemoryAffinity").numa

    def nvmlDeviceGetUtilizationRates(self, card: Card) -> SimpleNamespace:
        return SimpleNamespace(gpu=self._ask(card, "nvmlDeviceGetUtilizationRates").busy)

    def nvmlDeviceGetMigMode(self, card: Card) -> list[int]:
        self._ask(card, "nvmlDeviceGetMigMode")
        return [int(card.instances is not None)] * 2

    def nvmlDeviceGetMaxMigDeviceCount(self, card: Card) -> int:
        return len(card.instances or [])

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: Card, index: int) -> Card:
        part = (card.instances or [])[index]
        if part is None:
            raise NVMLError(NOT_FOUND)
        return part

    def nvmlDeviceGetGpuInstanceId(self, part: Card) -> int:
        return part.ids[0]

    def nvmlDeviceGetComputeInstanceId(self, part: Card) -> int:
        return part.ids[1]

    def nvmlDeviceGetTopologyCommonAncestor(self, one: Card, other: Card) -> int:
        pair = self.cards.index(one), self.cards.index(other)
        if pair not in self.levels:
            raise NVMLError(NOT_SUPPORTED)
        return self.levels[pair]

    def nvmlDeviceGetNvLinkState(self, card: Card, link: int) -> int:
        if link not in card.links:
            raise NVMLError(NOT_SUPPORTED)
        return 1

    def nvmlDeviceGetNvLinkRemotePciInfo(self, card: Card, link: int) -> SimpleNamespace:
        return SimpleNamespace(busId=card.links[link].encode())

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, card: Card, link: int) -> int:
        return 2 if card.links[link] == "switch" else 0


def cards(count: int) -> list[Card]:
    """Cards as they stand in one node, named GPU-a0…, GPU-b1…, …"""
    return [
        Card(uuid=f"GPU-{chr(97 + index)}{index}", bus=f"00000000:{index + 7:02X}:00.0", busy=10 * index)
        for index in range(count)
    ]
