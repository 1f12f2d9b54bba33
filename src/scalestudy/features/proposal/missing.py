"""What a proposal lacks: the reason, and the remedy that the page names."""

from typing import NamedTuple

AGAIN = "Run the study again with this version."
GPUS = "Run the study on GPUs whose driver reports it (NVML)."
LONGER = "Train for more than one epoch: `epochs` under [train]."
REPEATED = "Run 3 seeds: `seed = [0, 1, 2]` under [sweep]."
BASELINE = "Add 1 to `workers` under [sweep]."
CURVE = (
    "Run at least three numbers of workers, as in `workers = [1, 2, 4]` under [sweep]."
)
MORE = "Request more workers: `--workers N`."


class Missing(NamedTuple):
    """A missing fact: the reason, without a full stop, and how to obtain it."""

    why: str
    remedy: str
