"""Records of a synthetic run, and a launcher that writes them."""

from collections.abc import Callable, Iterator
from typing import Any

from scalestudy.config.point import Point
from scalestudy.launch.launcher import Moved
from scalestudy.store.records import (
    SHARED_CORES,
    Disturbance,
    EpochRecord,
    Failure,
    Progress,
    Result,
    Timing,
)
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder


def progress_of(**changes: Any) -> Progress:
    """Progress in the first of two epochs, with these other values."""
    values = {
        "phase": "training",
        "epoch": 1,
        "epochs": 2,
        "step": 1,
        "steps": 2,
        "updated": 0.0,
    }
    return Progress.model_validate(values | changes)


def result_of(point: Point, quality: float = 0.75, wall: float = 5.0) -> Result:
    """The record that rank 0 writes at the end of a run of two epochs, or of a timing run."""
    result = Result(
        name=point.name,
        strategy=point.strategy,
        implementation=point.implementation,
        workers=point.workers,
        seed=point.seed,
        per_worker_batch=32,
        global_batch=point.global_batch,
        epochs=2,
        updates=4,
        samples_processed=32,
        training_samples=16,
        throughput=100.0 * point.workers,
        steady_epochs=1,
        training_seconds=3.0 / point.workers,
        wall_seconds=wall,
        phases={"training": 3.0},
        metric="accuracy",
        quality=quality,
        best_quality=quality,
        best_epoch=2,
        parameters=10,
        weights_digest="0",
        oversubscribed=point.oversubscribed,
        finished="2020-01-01T00:00:00+00:00",
    )
    if not point.timing:
        return result
    seconds = result.training_seconds / 2
    timing = Timing(
        warm_up_steps=1,
        warm_up_seconds=seconds / 2,
        steps=2,
        seconds=seconds / 2,
        evaluations=[0.0, 0.0],
        training_epochs=2,
        training_updates=7,
        training_samples=32,
        training_evaluations=2,
        losses=[0.9, 0.8, 0.7],
    )
    unknown = {"quality": None, "best_quality": None, "best_epoch": None, "epochs": 0}
    return result.model_copy(
        update={
            "timing": timing,
            "wall_seconds": wall - seconds,
            "training_seconds": seconds,
            **unknown,
        }
    )


def epoch_of(number: int = 1) -> EpochRecord:
    """The record that rank 0 writes at the end of an epoch."""
    return EpochRecord(
        epoch=number,
        steps=2,
        samples=16,
        learning_rate=0.1,
        loss=1.0 / number,
        train_seconds=1.0,
        input_seconds=0.0,
        elapsed_training_seconds=float(number),
        validation={"loss": 1.0, "accuracy": 0.5},
    )


def finish(run: RunFolder, quality: float = 0.75, wall: float = 5.0) -> None:
    """Write the records of a finished run of two epochs, or of a timing run."""
    for number in () if run.point().timing else (1, 2):
        run.append_epoch(epoch_of(number))
    run.write_result(result_of(run.point(), quality, wall))


class FakeLauncher:
    """Replaces local runs: `fail` and `interrupt` name points that fail or stop.

    `disturb` names those on whose cores other programs compute, `share` those on whose cores a study does.
    """

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.fail: set[str] = set()
        self.disturb: set[str] = set()
        self.share: set[str] = set()
        self.interrupt: str | None = None
        self.points: list[Point] = []
        self.quality: Callable[[Point], float] = lambda point: 0.75
        self.wall: Callable[[Point], float] = lambda point: 5.0

    def __call__(
        self, folder: StudyFolder, point: Point, *_: object
    ) -> Iterator[Moved]:
        if point.name in self.share:
            point = point.on(oversubscribed=SHARED_CORES)
        self.points.append(point)
        run = folder.new_run(point)
        yield Moved(point.name)
        run.write_progress(progress_of())
        yield Moved(point.name)
        if point.name == self.interrupt:
            run.write_failure(
                Failure(rank=None, exit_code=None, reason="interrupted by the user")
            )
            raise KeyboardInterrupt
        self.ran.append(point.name)
        if point.name in self.fail:
            reason = "rank 1 ended with exit code 3"
            run.write_failure(
                Failure(rank=1, exit_code=3, reason=reason, tail=["last words"])
            )
        else:
            finish(run, self.quality(point), self.wall(point))
            if point.name in self.disturb:
                run.write_disturbance(Disturbance(share=0.5))
            run.write_checksums()
        yield Moved(point.name)
