"""From a strategy's name to the strategy."""

from scalestudy.cluster.placement import Placement
from scalestudy.strategies.base import Strategy


def make_strategy(
    implementation: str,
    placement: Placement,
    *,
    workers: int,
    device: str,
    sync_batch_norm: bool,
    communication: str = "auto",
) -> Strategy:
    """Join the other workers under the named strategy. Imports only what that strategy needs.

    Args:
        implementation: "single", "mirrored", "multiworker", "horovod" or "virtual".
        placement: This process among the others.
        workers: Workers of the run.
        device: "cpu" or "gpu".
        sync_batch_norm: Whether batch normalisation spans the workers.
        communication: For multiworker: "auto", "ring" or "nccl".
    """
    if implementation == "mirrored":
        from scalestudy.strategies.mirrored import Mirrored

        return Mirrored(workers, device=device, sync_batch_norm=sync_batch_norm)
    if implementation == "multiworker":
        from scalestudy.strategies.multiworker import MultiWorker

        return MultiWorker(placement, communication=communication, sync_batch_norm=sync_batch_norm)
    if implementation == "horovod":
        from scalestudy.strategies import rendezvous
        from scalestudy.strategies.horovod import Horovod

        rendezvous.join(placement)
        return Horovod(placement, sync_batch_norm=sync_batch_norm)
    if implementation == "virtual":
        from scalestudy.strategies.virtual import Virtual

        return Virtual(workers, sync_batch_norm=sync_batch_norm)
    from scalestudy.strategies.single import Single

    return Single(1, sync_batch_norm=sync_batch_norm)
