"""The records of a run while it trains: progress and epochs."""

import time
from typing import Any

from scalestudy.hardware.cores import granted
from scalestudy.store.records import EpochRecord, Progress
from scalestudy.store.run_folder import RunFolder
from scalestudy.training.position import Position
from scalestudy.training.session import Moment, Session

PROGRESS_EVERY = 1.0
"""Seconds between two progress records."""
PROGRESS_EVERY_IN_JOB = 5.0
"""The same in a job, on a file system that many jobs share."""


class Reporter:
    """Writes the progress and epoch records of a run that continues from `position`."""

    def __init__(
        self,
        folder: RunFolder,
        session: Session,
        position: Position | None,
    ) -> None:
        self._folder = folder
        self._session = session
        self._written = 0.0
        self._used = (time.process_time(), time.monotonic())
        kept = 0
        if position:
            kept = position.epoch
        # Epochs after the checkpoint are trained again.
        self.records = folder.keep_epochs(kept)
        """Records of all epochs so far."""
        self._ended: float | None = None
        self._between = 0.0
        self.restarts = 0
        """How often the run continued from a checkpoint, including several times from the same one."""
        self._last = Progress(
            phase="start-up",
            epoch=0,
            epochs=session.epochs,
            step=0,
            steps=session.steps,
            quality=self._last_quality(),
            restarts=0,
            # Each write sets it.
            updated=0,
        )
        if position:
            # A run may be killed again before its next checkpoint, which alone would not count that restart.
            before = folder.progress()
            self.restarts = position.restarts + 1
            if before:
                self.restarts = max(position.restarts, before.restarts) + 1
            self._last = self._last.model_copy(
                update={
                    "epoch": position.epoch,
                    "step": position.step,
                    "restarts": self.restarts,
                }
            )

    def _last_quality(self) -> float | None:
        for record in reversed(self.records):
            if record.validation:
                return record.validation[self._session.metric]
        return None

    def phase(self, phase: str) -> None:
        """Record that the run has entered a phase."""
        self._write(phase=phase)

    def moment(self, moment: Moment) -> None:
        """Record the progress after a call, at most once every `PROGRESS_EVERY` seconds."""
        every = PROGRESS_EVERY
        if self._folder.in_job:
            every = PROGRESS_EVERY_IN_JOB
        if time.monotonic() - self._written < every:
            return
        throughput = None
        if moment.seconds:
            throughput = moment.samples / moment.seconds
        epochs_left = self._session.epochs - moment.epoch + 1
        steps_left = epochs_left * moment.steps - moment.step
        seconds_of_steps = steps_left * moment.seconds / moment.step
        self._write(
            phase="training",
            epoch=moment.epoch,
            step=moment.step,
            throughput=throughput,
            seconds_left=seconds_of_steps + epochs_left * self._between,
            cpu_percent=self._cpu_percent(),
            gpu_percent=self._session.gpu_percent(),
        )

    def epoch(self, record: EpochRecord) -> None:
        """Record a finished epoch."""
        self.records.append(record)
        self._folder.append_epoch(record)
        quality = record.validation.get(self._session.metric, self._last.quality)
        now = time.monotonic()
        since = self._ended
        self._between = record.evaluation_seconds
        if since is not None:
            # Callbacks, checkpoints and other work between the steps of two epochs.
            self._between = max(self._between, now - since - record.train_seconds)
        self._ended = now
        epochs_left = self._session.epochs - record.epoch
        left = epochs_left * (record.train_seconds + self._between)
        self._write(
            phase="training",
            epoch=record.epoch,
            step=record.steps,
            quality=quality,
            throughput=record.samples / record.train_seconds,
            seconds_left=left,
        )

    def _cpu_percent(self) -> float:
        """Return how much of its granted cores this process has used since the last call, in per cent."""
        used = time.process_time()
        now = time.monotonic()
        (before, then), self._used = self._used, (used, now)
        seconds = max(now - then, 1e-9)
        return 100 * (used - before) / seconds / len(granted())

    def _write(self, **changes: Any) -> None:
        self._last = self._last.model_copy(update={**changes, "updated": time.time()})
        self._folder.write_progress(self._last)
        self._written = time.monotonic()
