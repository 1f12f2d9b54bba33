"""A task's callbacks: called on rank 0; what they decide is passed on to every rank."""

import numpy as np

from scalestudy.engines.base import Trainer
from scalestudy.engines.group import Group
from scalestudy.training.checkpoint import alike


class CallbackDecisions:
    """Calls a task's callbacks on rank 0 alone, so that no file is written twice.

    After each epoch every rank learns whether training is to stop, the learning rate where a callback has
    set it, and the weights, which a callback (early stopping) may have changed. The rate they learn before
    each epoch too, and the weights before the first: schedules and what restores weights set them there.
    """

    def __init__(self, trainer: Trainer, group: Group, *, epochs: int, steps: int) -> None:
        self._trainer, self._group = trainer, group
        self._active = trainer.has_callbacks
        called = self._active and group.rank == 0
        self._callbacks = trainer.callbacks(epochs=epochs, steps=steps) if called else None

    def begin(self) -> None:
        """Training begins."""
        if self._callbacks:
            self._callbacks.begin()
        if self._active:
            self._agree(stop=False)
            self._share_weights()

    def epoch_begin(self, epoch: int) -> None:
        """Epoch `epoch`, from 0, begins."""
        if self._callbacks:
            self._callbacks.epoch_begin(epoch)
        if self._active:
            self._agree(stop=False)

    def batch_end(self, step: int) -> None:
        """The call that ends with step `step` of the epoch is done."""
        if self._callbacks:
            self._callbacks.batch_end(step)

    def epoch_end(self, epoch: int, logs: dict[str, float]) -> bool:
        """Epoch `epoch` is over; returns whether every rank is to stop."""
        if self._active:
            self._trainer.average()  # what callbacks read, and may keep, are the weights of all workers
        stop = self._callbacks.epoch_end(epoch, logs) if self._callbacks else False
        if self._active:
            stop = self._agree(stop)
            self._share_weights()
        return stop

    def end(self, logs: dict[str, float]) -> None:
        """Training is over."""
        if self._callbacks:
            self._callbacks.end(logs)
        if self._active:
            self._share_weights()

    def _agree(self, stop: bool) -> bool:
        rate = self._trainer.rate
        mine = np.zeros(2, np.float64)
        if self._group.rank == 0:
            mine[:] = stop, rate or 0.0
        asked, agreed = self._group.host_sum(mine)
        if rate is not None and self._group.rank != 0:
            self._trainer.set_rate(float(agreed))
        return bool(asked)

    def _share_weights(self) -> None:
        """Give every rank what rank 0 has, where a callback has changed it: most never do."""
        if self._group.size > 1 and not alike(self._trainer, self._group):
            self._trainer.share()
