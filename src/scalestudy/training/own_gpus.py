"""Whether each process of a run computes on a GPU of its own: known only once all have met."""

import hashlib
from collections.abc import Sequence

import numpy as np

from scalestudy.errors import UserError
from scalestudy.strategies.group import Group

UNUSABLE = "invalid usage"
"""What NCCL says in its first sum where two processes have one GPU (ncclInvalidUsage; src/init.cc)."""
EXPECTED = "a GPU of its own for each process"
ACTION = (
    "Let the launcher show every process all GPUs of its node, or each a different one: look at "
    "--gpu-bind, at gpu_request in the site profile, and at what sets CUDA_VISIBLE_DEVICES."
)


def refuse_shared_gpus(group: Group, uuids: Sequence[str]) -> None:
    """Refuse processes that compute on one GPU; each of them sees nothing wrong by itself.

    Slurm deals one GPU to several tasks under `--gpu-bind=single:2` or `map_gpu:0`, wrappers by mistake.
    Where processes tell each other by NCCL (multiworker), it refuses first, and names no ranks.

    Args:
        group: The processes; every rank must ask.
        uuids: UUIDs of the GPUs that this process computes on; none on CPUs, or where NVML does not say.

    Raises:
        UserError: On every rank, if two have one in common.
    """
    if group.size == 1:
        return
    try:
        (marks,) = group.gather([np.array([_mark(uuids[0]) if uuids else 0], np.int64)])
    except Exception as error:  # each framework has its own
        if UNUSABLE not in str(error):
            raise
        words = next(line for line in str(error).splitlines() if UNUSABLE in line)
        raise UserError(EXPECTED, f"NCCL's refusal, as of two on one: {words.strip()}", ACTION) from error
    ranks: dict[int, list[int]] = {}
    for rank, mark in enumerate(marks.tolist()):
        ranks.setdefault(mark, []).append(rank)
    shared = next((same for mark, same in ranks.items() if mark and len(same) > 1), None)
    if shared:
        raise UserError(EXPECTED, f"one that ranks {', '.join(map(str, shared))} share", ACTION)


def _mark(uuid: str) -> int:
    """A number that tells UUIDs apart, and is not 0."""
    return int.from_bytes(hashlib.sha256(uuid.encode()).digest()[:7], "big") or 1
