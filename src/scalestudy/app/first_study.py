"""The study that `scalestudy init` writes: small enough to run on this machine within minutes."""

from dataclasses import dataclass
from typing import Any

from scalestudy.study.engines import DEFAULT, engine_traits, installed_engine
from scalestudy.study.strategies import of_engine
from scalestudy.study.template import study_template

MOST_WORKERS = 8
"""A larger first study would take longer and show little more."""
SMALL_SET: dict[str, Any] = {
    "data.source": "indents:240",
    "data.image_size": [64, 64],
    "train.epochs": 10,
    "train.batch": "global",
    "train.learning_rate": 0.01,
    "train.schedule": "cosine",
}
"""A U-Net on few small synthetic micrographs, with the same batches for any number of workers."""


@dataclass(frozen=True)
class FirstStudy:
    """The text of a first study, and a sentence with its number of points and its resources."""

    text: str
    summary: str


def first_study(task: str | None, *, gpus: int, cores: int) -> FirstStudy:
    """Make a study for the usable GPUs, or else the cores; if `task` is None, with the U-Net."""
    units_here = gpus or cores
    workers = [count for count in (1, 2, 4, MOST_WORKERS) if count <= units_here]
    engine = installed_engine()
    strategies = [engine_traits(engine).default_strategy]
    if len(workers) > 1:
        strategies += _installed_strategies(engine)
    seeds = [0, 1] if len(strategies) > 1 else [0, 1, 2]
    values: dict[str, Any] = {
        "sweep.strategy": strategies, "sweep.workers": workers, "sweep.seed": seeds,
    }  # fmt: skip
    values |= {"engine": engine} if engine != DEFAULT else {}
    if task is None:
        values |= SMALL_SET | {"train.batch_size": 8 * workers[-1]}
    points = len(strategies) * len(workers) * len(seeds)
    what = f"{gpus} GPU{'s' * (gpus != 1)}" if gpus else f"{cores} core{'s' * (cores != 1)}"
    takes = "`scalestudy run --dry-run` predicts their time once a run has ended"
    return FirstStudy(study_template(task or "unet", values), f"{points} points on {what}; {takes}")


def _installed_strategies(name: str) -> list[str]:
    """Strategies of an engine that have a library, if it is installed."""
    engine = engine_traits(name)
    rows = [row for row in of_engine(name) if row.library]
    return [row.name for row in rows if engine.missing_software([row.library or ""]) is None]
