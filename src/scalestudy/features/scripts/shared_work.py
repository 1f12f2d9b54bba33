"""Whether the workers of a script share its work. Processes that do not would double every figure.

Each function names what was seen and the line that mends it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from scalestudy.util.errors import RunError

SAME_LOSS = 1e-7
"""Relative difference below which mean losses are the same: those of other samples differ by far more."""
NEAR = 0.1
"""Relative difference within which epochs grow in proportion to the workers, for dropped remainders."""
GUIDE = "docs/guides/script.md"
SHARE = {
    "ddp": "DataLoader(train, sampler=DistributedSampler(train))",
    "horovod": "dataset.shard(hvd.size(), hvd.rank()) before shuffle and batch, or x[hvd.rank()::hvd.size()]",
    "multiworker": "options.experimental_distribute.auto_shard_policy = AutoShardPolicy.DATA",
}
"""Lines that give each worker its share of the samples, by strategy."""
JOIN = {
    "ddp": "dist.init_process_group() and model = DistributedDataParallel(model)",
    "horovod": "hvd.init() and hvd.DistributedOptimizer(optimizer)",
    "multiworker": "strategy = MultiWorkerMirroredStrategy(), and the model under strategy.scope()",
    "mirrored": "strategy = MirroredStrategy(), and the model under strategy.scope()",
}
"""Lines that combine the gradients of the workers, by strategy."""


class Share(NamedTuple):
    """What one process did in an epoch.

    Attributes:
        samples: Samples that it trained on.
        steps: Steps that it took.
        loss: Mean loss of its samples; None if unknown.
        shared: Whether samples and loss are those of all replicas of a strategy.
        joined: Workers that combine their gradients, itself included; None if unknown.
    """

    samples: int
    steps: int
    loss: float | None
    shared: bool
    joined: int | None


def refuse_apart(strategy: str, workers: int, shares: Sequence[Share]) -> None:
    """Refuse workers that do not combine their gradients, or that train on the same samples.

    Args:
        strategy: Name of the strategy.
        workers: Number of workers.
        shares: The first epoch of each process.

    Raises:
        RunError: What was seen, and the line to write.
    """
    least = min((share.joined for share in shares if share.joined is not None), default=workers)
    if least != workers:
        alone = "each trains on its own" if least == 1 else f"a group of {least}"
        raise RunError(
            f"{workers} workers that combine their gradients",
            f"{alone}: {_twice(shares)}",
            f"Write {JOIN.get(strategy, JOIN['ddp'])}; otherwise this is no scaling. See {GUIDE}.",
        )
    losses = [share.loss for share in shares]
    alike = len({(share.samples, share.steps) for share in shares}) == 1
    known = [loss for loss in losses if loss is not None and math.isfinite(loss)]
    if len(shares) < 2 or any(share.shared for share in shares) or not alike or len(known) < len(shares):
        return
    if all(math.isclose(loss, known[0], rel_tol=SAME_LOSS) for loss in known):
        raise RunError(
            "each worker to train on other samples",
            f"the same mean loss on all {len(shares)} ({known[0]:.7g}) after {_twice(shares)}",
            f"Write {SHARE.get(strategy, SHARE['ddp'])}; otherwise this is no scaling. If the loss that you "
            "count is averaged over the workers, count this worker's own.",
        )


def _twice(shares: Sequence[Share]) -> str:
    first = shares[0].samples
    if all(share.samples == first for share in shares):
        return f"{first:,} samples an epoch each"
    return f"{' and '.join(f'{share.samples:,}' for share in shares)} samples an epoch"


def find_grown(workers: int, samples: int, other_workers: int, other_samples: int) -> bool:
    """Return whether the epochs of two runs grow with their workers, so that each worker reads everything."""
    if workers == other_workers or not samples or not other_samples:
        return False
    grown = (samples / other_samples) / (workers / other_workers)
    return abs(grown - 1) <= NEAR


def find_other_set(workers: int, evaluated: int, other_workers: int, other_evaluated: int) -> bool:
    """Return whether two runs measured their quality on other samples.

    Their numbers may differ by a few, which fill up a batch, and each worker may evaluate everything.
    """
    same = abs(evaluated / other_evaluated - 1) <= NEAR
    return not same and not find_grown(workers, evaluated, other_workers, other_evaluated)


def grown_error(strategy: str, workers: int, samples: int, other: int, other_samples: int) -> RunError:
    """Return the error for a run that reads as many samples on each worker as another one in all."""
    return RunError(
        f"about {other_samples:,} samples an epoch, as with {other} worker{'s' * (other > 1)}",
        f"{samples:,} with {workers}: each worker reads everything",
        f"Write {SHARE.get(strategy, SHARE['ddp'])}; otherwise this is no scaling. If an epoch is meant to "
        "grow with the workers, say so by --weak-scaling.",
    )
