"""The result of a run that was never run."""

from scalestudy.study.point import Point
from scalestudy.study.records import Result


def result_of(point: Point, quality: float = 0.75) -> Result:
    """What rank 0 writes at the end of a run of two epochs."""
    return Result(
        name=point.name, strategy=point.strategy, implementation=point.implementation, workers=point.workers,
        seed=point.seed, per_worker_batch=32, global_batch=32 * point.workers, epochs=2, updates=4,
        samples_processed=32, training_samples=16, throughput=100.0 * point.workers, steady_epochs=1,
        training_seconds=3.0 / point.workers, wall_seconds=5.0, phases={"training": 3.0}, metric="accuracy",
        quality=quality, best_quality=quality, best_epoch=2, parameters=10, weights_digest="0",
        finished="2020-01-01T00:00:00+00:00",
    )  # fmt: skip
