"""Whether the workers of a script share its work. Processes that do not would double every figure.

Each function names what was seen and the line that mends it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from scalestudy.plugins.strategies import traits
from scalestudy.util.errors import RunError
from scalestudy.util.text import plural

SAME_LOSS = 1e-7
"""Relative difference below which mean losses are the same: those of other samples differ by far more."""
NEAR = 0.1
"""Relative difference within which epochs grow in proportion to the workers, for dropped remainders."""
GUIDE = "`scalestudy docs guides/script`"


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
    for share in shares:
        # None where the framework does not tell: such a script is not refused for it.
        if share.joined is None or share.joined == workers:
            continue
        group = f"a group of {share.joined}"
        if share.joined == 1:
            group = "each trains on its own"
        line = traits(strategy).join_line
        raise RunError(
            f"{workers} workers that combine their gradients",
            f"{group}: {_describe(shares)}",
            f"Write {line}; otherwise this is no scaling. See {GUIDE}.",
        )
    # Processes that have joined may still all read the same samples.
    if len(shares) > 1 and _is_same_work(shares):
        line = traits(strategy).share_line
        raise RunError(
            "each worker to train on other samples",
            f"the same mean loss on all {len(shares)} ({shares[0].loss:.7g}) after {_describe(shares)}",
            f"Write {line}; otherwise this is no scaling. If the loss that you count is averaged over the "
            "workers, count this worker's own.",
        )


def _is_same_work(shares: Sequence[Share]) -> bool:
    """Return whether all processes took as many steps, of as many samples, to the same loss."""
    first = shares[0]
    for share in shares:
        if share.shared or share.loss is None or first.loss is None:
            return False
        if (share.samples, share.steps) != (first.samples, first.steps):
            return False
        # NaN is close to nothing: workers that all diverged may have trained on other samples.
        if not math.isclose(share.loss, first.loss, rel_tol=SAME_LOSS):
            return False
    return True


def _describe(shares: Sequence[Share]) -> str:
    counts = [f"{share.samples:,}" for share in shares]
    if len(set(counts)) == 1:
        return f"{counts[0]} samples an epoch each"
    return f"{' and '.join(counts)} samples an epoch"


def find_grown(
    workers: int,
    samples: int,
    other_workers: int,
    other_samples: int,
) -> bool:
    """Return whether the epochs of two runs grow with their workers, so that each worker reads everything."""
    if workers == other_workers or not samples or not other_samples:
        return False
    # In either direction: the run with fewer workers may be the later one.
    grown = (samples / other_samples) / (workers / other_workers)
    return abs(grown - 1) <= NEAR


def find_other_set(
    workers: int,
    evaluated: int,
    other_workers: int,
    other_evaluated: int,
) -> bool:
    """Return whether two runs measured their quality on other samples.

    Their numbers may differ by a few, which fill up a batch, and each worker may evaluate everything.
    """
    same = abs(evaluated / other_evaluated - 1) <= NEAR
    if same:
        return False
    each_evaluates_all = find_grown(
        workers,
        evaluated,
        other_workers,
        other_evaluated,
    )
    return not each_evaluates_all


def grown_error(
    strategy: str,
    workers: int,
    samples: int,
    other: int,
    other_samples: int,
) -> RunError:
    """Return the error for a run that reads as many samples on each worker as another one in all."""
    return RunError(
        f"about {other_samples:,} samples an epoch, as with {other} {plural('worker', other)}",
        f"{samples:,} with {workers}: each worker reads everything",
        f"Write {traits(strategy).share_line}; otherwise this is no scaling. If an epoch is meant to "
        "grow with the workers, say so by --weak-scaling.",
    )
