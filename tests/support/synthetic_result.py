"""Records of a synthetic run, and a launcher that writes them."""

from collections.abc import Iterator

from scalestudy.launch.local.run import RunOutcome
from scalestudy.study.point import Point
from scalestudy.study.records import EpochRecord, Failure, Progress, Result
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.store import StudyFolder


def result_of(point: Point, quality: float = 0.75) -> Result:
    """The record that rank 0 writes at the end of a run of two epochs."""
    return Result(
        name=point.name, strategy=point.strategy, implementation=point.implementation, workers=point.workers,
        seed=point.seed, per_worker_batch=32, global_batch=32 * point.workers, epochs=2, updates=4,
        samples_processed=32, training_samples=16, throughput=100.0 * point.workers, steady_epochs=1,
        training_seconds=3.0 / point.workers, wall_seconds=5.0, phases={"training": 3.0}, metric="accuracy",
        quality=quality, best_quality=quality, best_epoch=2, parameters=10, weights_digest="0",
        finished="2020-01-01T00:00:00+00:00",
    )  # fmt: skip


def epoch_of(number: int = 1) -> EpochRecord:
    """The record that rank 0 writes at the end of an epoch."""
    return EpochRecord(
        epoch=number, steps=2, samples=16, learning_rate=0.1, loss=1.0 / number, train_seconds=1.0,
        input_seconds=0.0, elapsed_training_seconds=float(number), validation={"loss": 1.0, "accuracy": 0.5},
    )  # fmt: skip


def finish(run: RunFolder, quality: float = 0.75) -> None:
    """Write the records of a finished run of two epochs."""
    for number in (1, 2):
        run.append_epoch(epoch_of(number))
    run.write_result(result_of(run.point(), quality))


class FakeLauncher:
    """Replaces local runs: points in `fail` fail, and `interrupt` is interrupted by Ctrl-C."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.fail: set[str] = set()
        self.interrupt: str | None = None
        self.points: list[Point] = []

    def __call__(self, folder: StudyFolder, point: Point) -> Iterator[RunFolder]:
        self.points.append(point)
        run = folder.new_run(point)
        yield run
        run.write_progress(Progress(phase="training", epoch=1, epochs=2, step=1, steps=2, updated=0.0))
        yield run
        if point.name == self.interrupt:
            run.write_failure(Failure(rank=None, exit_code=None, reason="interrupted by the user"))
            raise KeyboardInterrupt
        self.ran.append(point.name)
        failure = None
        if point.name in self.fail:
            reason = "rank 1 ended with exit code 3"
            failure = Failure(rank=1, exit_code=3, reason=reason, tail=["last words"])
            run.write_failure(failure)
        else:
            finish(run)
            run.write_checksums()
        yield run
        return RunOutcome(point, failure is None, failure)
