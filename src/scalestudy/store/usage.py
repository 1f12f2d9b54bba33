"""What a run used of its machines over the training time. Unmeasured values are None, never zero."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Use(BaseModel):
    """Part of a result. Unknown keys are ignored, as in all records."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)


class GpuUse(Use):
    """Use of one GPU over the training time; None for values that the card or its driver does not report."""

    rank: int
    device: int
    """Its index in the rank's `device_uuids`."""
    percent: float | None = None
    """Mean utilisation: share of time in which it computed. Not reported for MIG instances."""
    memory_percent: float | None = None
    """Mean share of time in which its memory was read or written. Not reported for MIG instances."""
    memory_bytes: Count | None = None
    """Peak memory in use by all processes; a framework may reserve all memory at its start."""
    memory_total_bytes: Count | None = None
    """Total memory."""
    allocated_bytes: Count | None = None
    """Peak memory that the framework used for tensors."""
    reserved_bytes: Count | None = None
    """Peak memory that PyTorch's allocator held, with unused blocks. TensorFlow does not report it."""
    watts: float | None = None
    """Mean power of the card."""
    joules: float | None = None
    """Energy of the card."""
    energy_from: Literal["counter", "power"] | None = None
    """Whether the card counted the energy, or its power was sampled once a second and integrated."""


class ProcessUse(Use):
    """Use of cores and storage by one process."""

    rank: int
    cpu_seconds: Amount | None = None
    """CPU time of all its threads."""
    read_bytes: Count | None = None
    """Bytes read from storage, not from the page cache."""
    written_bytes: Count | None = None
    """Bytes written to storage."""


class NodeUse(Use):
    """Traffic and energy of a whole node over the training time; recorded by its first process."""

    rank: int
    """Rank of that process."""
    sent_bytes: Count | None = None
    """Bytes sent on its network interfaces, including InfiniBand ports."""
    received_bytes: Count | None = None
    loopback_bytes: Count | None = None
    """Bytes sent between processes of the node, by TCP."""
    cpu_joules: Amount | None = None
    """Energy of its processors (RAPL, all packages)."""
