"""The weights of the best epoch, kept beside those of the last."""

import contextlib
import math
import os
import traceback
from collections.abc import Mapping

from scalestudy.engines.base import Trainer
from scalestudy.measure.clock import PhaseClock
from scalestudy.study.metrics import Better, gain, known
from scalestudy.study.model_record import BestRecord
from scalestudy.study.records import EpochRecord
from scalestudy.study.run_folder import RunFolder
from scalestudy.training.checkpoint import Position
from scalestudy.training.session import Session
from scalestudy.util.errors import UserError

NONE, QUALITY = "none", "quality"
"""What `keep_best` says where no epoch is to be kept, and where it is by the task's first metric."""


def metric_to_keep(wanted: str, trainer: Trainer) -> tuple[str, Better] | None:
    """The metric that epochs are compared by, and which way it is better; None where none is kept.

    Args:
        wanted: `keep_best` of the study file.
        trainer: What computes.

    Raises:
        UserError: If the task has no such metric, or nothing says which way it is better.
    """
    if wanted == NONE:
        return None
    name = trainer.metrics[0] if wanted == QUALITY else wanted
    # A metric may have values of its own beside it, as of each class: iou_background.
    beside = [each for each in trainer.metrics if name.startswith(f"{each}_")]
    base = name if name in ("loss", *trainer.metrics) else max(beside, key=len, default=None)
    if base is None:
        raise UserError(
            f"keep_best to name a metric of the task ({', '.join(trainer.metrics)}), quality, loss or none",
            repr(name),
            "Correct keep_best under [train].",
        )
    better = trainer.senses[base].better if base in trainer.senses else known(base).better
    if better is None:
        raise UserError(
            f"to know whether higher or lower is better for {name!r}, by which the best epoch is kept",
            "a metric of which nothing says so",
            f'Add better = {{"{base}": "higher"}}, or "lower", to the task file; or choose another for '
            "keep_best.",
        )
    return name, better


def improves(value: float | None, before: float | None, better: Better) -> bool:
    """Whether a value is better than the best before it; what is not finite never is."""
    if value is None or not math.isfinite(value):
        return False
    return before is None or gain(value, better) > gain(before, better)


class BestKeeper:
    """Keeps the model after each evaluation that is better than all before it; rank 0 writes.

    The files are replaced whole. A failing disk keeps no run from going on: it is told in the log, and the
    best epoch before stays.

    Args:
        folder: Where it is kept.
        session: What is run; it tells of every epoch that was evaluated.
        clock: Where the time that it takes is counted: never as training.

    Raises:
        UserError: As `metric_to_keep`.
    """

    def __init__(self, folder: RunFolder, session: Session, clock: PhaseClock) -> None:
        self._folder, self._trainer, self._clock = folder, session.trainer, clock
        self._writes = session.group.rank == 0
        self._kept = metric_to_keep(session.point.train.keep_best, session.trainer)
        self._best: float | None = None
        session.evaluated = self.evaluated

    def begin(self, position: Position | None) -> None:
        """Go on from a checkpoint and what was kept before it, or from nothing."""
        if not self._writes:
            return
        found = self._folder.best_record()
        goes_on = position is not None and position.epoch > 0 and self._folder.best.exists()
        if goes_on and found and self._kept and found.metric == self._kept[0]:
            self._best = found.value
        else:
            self._folder.forget_best()

    def evaluated(self, record: EpochRecord) -> None:
        """An epoch was evaluated, and the weights are those of its values. Every rank tells."""
        if self._kept is None:
            return
        with self._clock.phase("saving"):
            if self._writes:
                self._consider(record.epoch, record.validation, *self._kept)

    def _consider(self, epoch: int, values: Mapping[str, float], metric: str, better: Better) -> None:
        value = values.get(metric)
        if value is None or not improves(value, self._best, better):
            return
        half = self._folder.best.with_name(f".half.{self._folder.best.name}")  # frameworks ask for the suffix
        self._folder.refuse_other_job()
        try:
            self._trainer.save(str(half))
            os.replace(half, self._folder.best)
            self._folder.write_best_record(BestRecord(epoch=epoch, metric=metric, value=value))
            self._best = value
        except Exception as error:  # of a disk, or of the user's own classes: what was measured stands
            traceback.print_exc()
            print(f"scalestudy: the model of epoch {epoch} is not kept: {error}", flush=True)
        finally:
            with contextlib.suppress(OSError):
                half.unlink(missing_ok=True)
