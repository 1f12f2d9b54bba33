"""One worker, alone: the reference that all others are held against."""

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Group
from scalestudy.engines.replicas import Joined, Replicas


def join(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """One worker in one process."""
    group = Group()
    return Joined(group, Replicas(group, 1, slices=[(0, 1)]))
