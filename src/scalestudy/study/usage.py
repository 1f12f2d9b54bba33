"""What a run used of its machines over the training time. What was not told is None, and never zero."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Use(BaseModel):
    """Part of a result. Unknown keys are kept out of the way, as in all records."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)


class GpuUse(Use):
    """What one GPU did over the training time; None for what the card or its driver does not tell."""

    rank: int
    device: int
    """Its place among the rank's `device_uuids`."""
    percent: float | None = None
    """Mean utilisation: share of time in which something was computed. Not told of MIG instances."""
    memory_percent: float | None = None
    """Mean share of time in which its memory was read or written. Not told of MIG instances."""
    memory_bytes: Count | None = None
    """The most that was in use on it, by whatever process; a framework may take all there is at its start."""
    memory_total_bytes: Count | None = None
    """All that it has."""
    allocated_bytes: Count | None = None
    """The most that the framework had given to tensors at once."""
    watts: float | None = None
    """Mean power of the card."""
    joules: float | None = None
    """Energy that the card drew."""
    energy_from: Literal["counter", "power"] | None = None
    """Whether the card counted that energy, or its power was integrated over looks a second apart."""


class ProcessUse(Use):
    """What one process used of its cores and its disks."""

    rank: int
    cpu_seconds: Amount | None = None
    """Of all its threads."""
    read_bytes: Count | None = None
    """Fetched from storage; what the page cache held already is not counted."""
    written_bytes: Count | None = None
    """Sent to storage."""


class NodeUse(Use):
    """What a node moved and drew meanwhile, on whoever's behalf; told by the first of its processes."""

    rank: int
    """That process."""
    sent_bytes: Count | None = None
    """Over its network interfaces, InfiniBand ports among them."""
    received_bytes: Count | None = None
    loopback_bytes: Count | None = None
    """Between processes of the node itself, by TCP."""
    cpu_joules: Amount | None = None
    """Energy of its processors (RAPL, all packages)."""
