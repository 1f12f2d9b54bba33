"""Rank 0's notes while a run is alive."""

import time
from typing import Any

from scalestudy.hardware.cores import granted
from scalestudy.study.records import EpochRecord, Progress
from scalestudy.study.run_folder import RunFolder
from scalestudy.training.checkpoint import Position
from scalestudy.training.session import Session
from scalestudy.training.tally import Moment

PROGRESS_EVERY = 1.0
"""Seconds between two progress records."""


class Reporter:
    """Writes the progress and the epochs of a run.

    Args:
        folder: Of the run.
        session: What is run.
        position: Where it goes on from, or None from the start.
    """

    def __init__(self, folder: RunFolder, session: Session, position: Position | None) -> None:
        self._folder, self._session = folder, session
        self._written = 0.0
        self._used = (time.process_time(), time.monotonic())
        self.records = folder.keep_epochs(position.epoch if position else 0)
        """Records of all epochs so far."""
        known = [record.validation[session.metric] for record in self.records if record.validation]
        self._last = Progress(
            phase="start-up", epoch=position.epoch if position else 0, epochs=session.epochs,
            step=position.step if position else 0, steps=session.steps,
            quality=known[-1] if known else None,
            restarts=position.restarts + 1 if position else 0, updated=0,
        )  # fmt: skip

    def phase(self, phase: str) -> None:
        """The run has entered a phase."""
        self._write(phase=phase)

    def moment(self, moment: Moment) -> None:
        """A call is done."""
        if time.monotonic() - self._written < PROGRESS_EVERY:
            return
        throughput = moment.samples / moment.seconds if moment.seconds else None
        steps_left = (self._session.epochs - moment.epoch + 1) * moment.steps - moment.step
        self._write(
            phase="training", epoch=moment.epoch, step=moment.step, throughput=throughput,
            seconds_left=steps_left * moment.seconds / moment.step,
            cpu_percent=self._cpu_percent(), gpu_percent=self._session.gpu_percent(),
        )  # fmt: skip

    def epoch(self, record: EpochRecord) -> None:
        """An epoch is done."""
        self.records.append(record)
        self._folder.append_epoch(record)
        quality = record.validation.get(self._session.metric, self._last.quality)
        left = (self._session.epochs - record.epoch) * (record.train_seconds + record.evaluation_seconds)
        self._write(
            phase="training", epoch=record.epoch, step=record.steps, quality=quality,
            throughput=record.samples / record.train_seconds, seconds_left=left,
        )  # fmt: skip

    def _cpu_percent(self) -> float:
        """Share of this process's cores that it used since this was asked before, in per cent."""
        used, now = time.process_time(), time.monotonic()
        (before, then), self._used = self._used, (used, now)
        return 100 * (used - before) / max(now - then, 1e-9) / len(granted())

    def _write(self, **changes: Any) -> None:
        self._last = self._last.model_copy(update={**changes, "updated": time.time()})
        self._folder.write_progress(self._last)
        self._written = time.monotonic()
