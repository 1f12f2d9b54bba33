"""Which of the cores that a launcher grants belong to one process."""

from collections.abc import Sequence

from scalestudy.cluster.placement import Placement
from scalestudy.hardware.near import shares


def own_cores(
    granted: Sequence[int], need: int, placement: Placement, near: Sequence[Sequence[int]] = ()
) -> list[int] | None:
    """The cores that this process pins itself to, or None to stay on all that are granted.

    A launcher may grant all processes of a node the same cores, or more than a worker is to have; a
    comparison of worker counts needs each worker on as many cores, and on its own.

    Args:
        granted: Cores that this process may run on, in the order in which they are dealt out.
        need: Cores that its workers are to have.
        placement: This process among the others.
        near: For each GPU of this node's processes, as many for each, the cores near it; none on CPUs.

    Returns:
        The share of the local rank, if there are more than needed and enough for all local ranks.
    """
    if len(granted) <= need or len(granted) < need * placement.local_size:
        return None
    if near:
        devices = len(near) // placement.local_size
        first = placement.local_rank * devices
        found = shares(granted, near, need // devices)[first : first + devices]
        return sorted(core for share in found for core in share)
    first = placement.local_rank * need
    return sorted(granted)[first : first + need]
