"""Synthetic diagnoses: times with known answers."""

from collections.abc import Sequence
from typing import Any

from scalestudy.config.point import Point
from scalestudy.config.settings import ResolvedData, ResolvedLaunch, TrainSettings
from scalestudy.config.task_defaults import task_defaults
from scalestudy.features.diagnose.ablation_record import (
    AblationTimes,
    BlockName,
    BlockTimes,
)
from scalestudy.features.diagnose.decomposition import RoundTimes, decompose
from scalestudy.features.diagnose.diagnosis_record import Diagnosis, DiagnosisTerms

WHOLE = RoundTimes(
    whole=0.100,
    without_input=0.080,
    without_exchange=0.060,
    slowest=0.058,
    together=(0.056, 0.052),
    alone=0.051,
    full=0.098,
    reference=0.100,
    share=0.5,
)
"""Times of two workers under a global batch: E = 0.5 × 0.1 / 0.1 = 0.5."""
TERMS = DiagnosisTerms(
    device="cpu",
    cores=8,
    cpus_per_worker=1,
    batch_size=64,
    steps_per_call=1,
)


def point(batch: str = "global", **changes: Any) -> Point:
    """Horovod on two workers."""
    train = task_defaults("cnn").complete_train(
        TrainSettings(batch=batch, batch_size=64)
    )  # type: ignore[arg-type]
    values: dict[str, Any] = {
        "name": "horovod-w2-s0",
        "study": "made",
        "task": "cnn",
        "strategy": "horovod",
        "workers": 2,
        "seed": 0,
        "data": ResolvedData(source="digits"),
        "train": train,
        "terms": {"implementation": "horovod", "launch": ResolvedLaunch()},
    }
    return Point(**(values | changes))


def block(
    name: BlockName,
    seconds: float,
    samples: int = 32,
    calls: int = 4,
    wait: float = 0.0,
) -> BlockTimes:
    """A block of calls of one step, each taking `seconds` including its `wait`."""
    return BlockTimes(
        name=name,
        steps_per_call=1,
        samples=samples,
        seconds=calls * seconds,
        waits=(wait,) * calls,
        calls=(seconds - wait,) * calls,
    )


def rank(number: int, *blocks: BlockTimes, **changes: Any) -> AblationTimes:
    """A rank on one core."""
    return AblationTimes(
        rank=number, host="node", cpus=(number,), blocks=blocks, **changes
    )


def made(
    rounds: Sequence[RoundTimes] = (WHOLE,),
    terms: DiagnosisTerms = TERMS,
    of: Point | None = None,
) -> Diagnosis:
    """A diagnosis of these rounds."""
    ranks = [rank(number) for number in range(len(rounds[0].together))]
    return decompose(of or point(), rounds, ranks, terms, block_seconds=1.0)
