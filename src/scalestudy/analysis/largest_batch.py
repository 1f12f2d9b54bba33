"""The largest per-worker batch that would still fit, estimated from runs of several batch sizes.

What a batch holds (its activations) grows with it, the rest (weights, optimizer, the framework) does not:
memory is a line in the batch size, fitted by least squares, and ends where the device's memory does. On GPUs
it is what the framework had given to tensors, on CPUs a process's resident memory, against its share of the
node's.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import floor

from scalestudy.analysis.means import largest_of
from scalestudy.analysis.runs import Key, Run

BATCH_SIZE = "train.batch_size"


def largest_batches(groups: Mapping[Key, Sequence[Run]]) -> dict[Key, int]:
    """Of each row that differs from others in nothing but its batch size; others have none."""
    alike: dict[Key, list[Key]] = {}
    for key in groups:
        swept = {name: value for name, value in key.swept.items() if name != BATCH_SIZE}
        rest = Key(key.strategy, key.workers, json.dumps(swept, sort_keys=True, default=str))
        alike.setdefault(rest, []).append(key)
    found: dict[Key, int] = {}
    for keys in alike.values():
        runs = [run for key in keys for run in groups[key]]
        if (batch := largest_batch(runs)) is not None:
            found |= dict.fromkeys(keys, batch)
    return found


def largest_batch(runs: Sequence[Run]) -> int | None:
    """The same of some runs; None with fewer than two batch sizes, or where memory grows with none."""
    told = [(run.result.per_worker_batch, *_memory(run)) for run in runs]
    known = [(batch, used, limit) for batch, used, limit in told if batch and used and limit]
    if len(known) < len(told) or len({batch for batch, _, _ in known}) < 2:
        return None
    slope, fixed = _line([(batch, used) for batch, used, _ in known])
    limit = min(limit for _, _, limit in known)
    if slope <= 0 or fixed >= limit:
        return None
    return max(floor((limit - fixed) / slope), *(batch for batch, used, _ in known if used <= limit))


def _memory(run: Run) -> tuple[float | None, float | None]:
    """Bytes used, and bytes there are, where they are scarcest."""
    if gpus := run.result.gpus:
        totals = [use.memory_total_bytes for use in gpus]
        limit = None if None in totals else min(each for each in totals if each is not None)
        return largest_of(use.allocated_bytes for use in gpus), limit
    limits = [rank.memory_limit_bytes for rank in run.ranks]
    if not limits or None in limits:
        return None, None
    processes = max(Counter(rank.host for rank in run.ranks).values())
    smallest = min(each for each in limits if each is not None)
    return largest_of(run.result.peak_memory_bytes), smallest / processes


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Slope and intercept by least squares."""
    mean_x, mean_y = (sum(each) / len(points) for each in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return slope, mean_y - slope * mean_x
