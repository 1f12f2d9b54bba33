"""Keras callbacks: called on rank 0; what they decide is passed on to every rank."""

from typing import Any

import keras
import numpy as np

from scalestudy.strategies.base import Strategy


class Callbacks:
    """Calls a task's Keras callbacks on rank 0 alone, so that no file is written twice.

    After each epoch every rank learns whether training is to stop, and the learning rate where a
    callback has set it.

    Args:
        callbacks: The task's.
        model: The model, with its optimizer.
        strategy: How the workers combine.
        epochs: Epochs of the run.
        steps: Steps of an epoch.
    """

    def __init__(
        self, callbacks: list[keras.callbacks.Callback], model: keras.Model, strategy: Strategy,
        *, epochs: int, steps: int,
    ) -> None:  # fmt: skip
        self._model, self._strategy = model, strategy
        self._active = bool(callbacks)
        chosen = callbacks if strategy.rank == 0 else []
        self._list = keras.callbacks.CallbackList(chosen, model=model, epochs=epochs, steps=steps, verbose=0)
        model.stop_training = False

    def begin(self) -> None:
        """Training begins."""
        self._list.on_train_begin()

    def epoch_begin(self, epoch: int) -> None:
        """Epoch `epoch`, from 0, begins."""
        self._list.on_epoch_begin(epoch)

    def batch_end(self, step: int) -> None:
        """The call that ends with step `step` of the epoch is done."""
        if self._active:
            self._list.on_train_batch_end(step)

    def epoch_end(self, epoch: int, logs: dict[str, float]) -> bool:
        """Epoch `epoch` is over; returns whether every rank is to stop."""
        self._list.on_epoch_end(epoch, logs)
        return self._agree() if self._active else False

    def end(self, logs: dict[str, float]) -> None:
        """Training is over."""
        self._list.on_train_end(logs)

    def _agree(self) -> bool:
        optimizer: Any = self._model.optimizer
        settable = not isinstance(optimizer._learning_rate, keras.optimizers.schedules.LearningRateSchedule)
        mine = np.zeros(2, np.float64)
        if self._strategy.rank == 0:
            mine[0] = float(self._model.stop_training)
            mine[1] = float(optimizer._learning_rate.value.numpy()) if settable else 0.0
        stop, rate = self._strategy.host_sum(mine)
        if settable and self._strategy.rank != 0:
            optimizer.learning_rate = rate
        self._model.stop_training = bool(stop)
        return bool(stop)
