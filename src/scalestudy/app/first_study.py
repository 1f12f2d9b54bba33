"""The study that `scalestudy init` writes: small enough for this machine to run within minutes."""

from dataclasses import dataclass
from typing import Any

from scalestudy.study.engines import DEFAULT, engine_traits
from scalestudy.study.strategies import swept_names, traits
from scalestudy.study.template import study_template
from scalestudy.util import units

MOST_WORKERS = 8
"""A larger first study would take longer, and say little more."""
SMALL_SET: dict[str, Any] = {
    "data.source": "indents:240",
    "data.image_size": [64, 64],
    "train.epochs": 10,
    "train.batch": "global",
    "train.learning_rate": 0.01,
    "train.schedule": "cosine",
}
"""A U-Net on few small synthetic micrographs; the same batches whatever the number of workers."""
START_SECONDS, GPU_START_SECONDS = 14.0, 40.0
"""Start, compilation and evaluation of a run of the U-Net, as measured on a desktop."""
CORE_SECONDS = 16.0
"""Steps of `SMALL_SET` on one core; on a GPU they hardly count."""
CNN_SECONDS = 6.0
"""A run of the CNN on its digits."""


@dataclass(frozen=True)
class FirstStudy:
    """A study to begin with.

    Attributes:
        text: Of its file.
        summary: How many points it has, on what, and about how long they take.
    """

    text: str
    summary: str


def first_study(task: str | None, *, gpus: int, cores: int) -> FirstStudy:
    """A study of this machine's GPUs, or else its cores.

    Args:
        task: Name of a task, or path of a Python file relative to the study file; None chooses the U-Net.
        gpus: GPUs that may be used.
        cores: Cores that may be used.
    """
    units_here = gpus or cores
    workers = [count for count in (1, 2, 4, MOST_WORKERS) if count <= units_here]
    strategies = [engine_traits(DEFAULT).default_strategy]
    if len(workers) > 1:
        strategies += _installed_strategies()
    seeds = [0, 1] if len(strategies) > 1 else [0, 1, 2]
    values: dict[str, Any] = {
        "sweep.strategy": strategies, "sweep.workers": workers, "sweep.seed": seeds,
    }  # fmt: skip
    if task is None:
        values |= SMALL_SET | {"train.batch_size": 8 * workers[-1]}
    points = len(strategies) * len(workers) * len(seeds)
    what = f"{gpus} GPU{'s' * (gpus != 1)}" if gpus else f"{cores} core{'s' * (cores != 1)}"
    seconds = _seconds(task, workers, gpu=gpus > 0)
    takes = (
        "how long they take depends on the data: `scalestudy run --dry-run` says so once a run has ended"
        if seconds is None
        else f"about {units.duration(len(strategies) * len(seeds) * seconds)} in all"
    )
    return FirstStudy(study_template(task or "unet", values), f"{points} points on {what}, {takes}")


def _installed_strategies() -> list[str]:
    """Strategies of the engine whose own library is installed, beside its default."""
    engine = engine_traits(DEFAULT)
    rows = [traits(name) for name in swept_names()]
    return [
        row.name
        for row in rows
        if row.engine == DEFAULT and row.library and engine.missing_software([row.library]) is None
    ]


def _seconds(task: str | None, workers: list[int], *, gpu: bool) -> float | None:
    """Of one run at each of these numbers of workers; None where nothing tells."""
    if task == "cnn":
        return CNN_SECONDS * len(workers)
    if task is not None:
        return None
    if gpu:
        return GPU_START_SECONDS * len(workers)
    return sum(START_SECONDS + CORE_SECONDS / count for count in workers)
