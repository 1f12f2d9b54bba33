"""One worker, alone: the reference that all others are held against."""

from scalestudy.cluster.placement import Placement
from scalestudy.engines.replicas import Joined
from scalestudy.engines.tensorflow.strategies.replicas import CompiledReplicas, TensorGroup


def join(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """One worker in one process."""
    group = TensorGroup()
    return Joined(group, CompiledReplicas(group, 1, slices=[(0, 1)]))
