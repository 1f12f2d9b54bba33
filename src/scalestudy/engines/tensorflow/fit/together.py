"""Sharing the decisions of rank 0's callbacks with all workers."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from scalestudy.engines.group import Group
from scalestudy.engines.keras.private import first_epoch, settable_rate
from scalestudy.engines.tensorflow.strategies.replicas import share_values

HARMLESS = (
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.TensorBoard,
    keras.callbacks.BackupAndRestore,
    keras.callbacks.CSVLogger,
    keras.callbacks.History,
    keras.callbacks.ProgbarLogger,
    keras.callbacks.RemoteMonitor,
)
"""Keras callbacks that do not change stop, rate or weights after training has begun."""
OF_BATCHES = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")


class SharedDecisions(keras.callbacks.Callback):
    """A callback after the user's callbacks that gives all ranks the decisions of rank 0.

    On other ranks no user callbacks run.

    Args:
        group: The processes.
        callbacks: The user's callbacks on this rank; only those of rank 0 are called.
    """

    def __init__(self, group: Group, callbacks: Sequence[keras.callbacks.Callback]) -> None:
        super().__init__()
        deciding = [callback for callback in callbacks if type(callback) not in HARMLESS]
        batches = any(map(hears_batches, deciding))
        careful, each_batch = group.share(np.array([bool(deciding), batches], np.int64))
        self._group, self._careful, self._each_batch = group, bool(careful), bool(each_batch)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Begin with rank 0's epoch, weights and optimizer, which a callback may have restored."""
        begin = self._group.share(np.array([first_epoch(self.model)], np.int64))
        first_epoch(self.model, int(begin[0]))
        self._agree(weights=True, optimizer=True)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._agree(weights=self._careful)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if self._each_batch:
            self._agree()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._agree(weights=self._careful)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._agree(weights=True)

    def _agree(self, *, weights: bool = False, optimizer: bool = False) -> None:
        rate = settable_rate(getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer))
        mine = np.array([self.model.stop_training, 0.0 if rate is None else float(rate.value)], np.float64)
        stop, agreed = self._group.share(mine)
        self.model.stop_training = bool(stop)
        if rate is not None and float(rate.value) != agreed:
            rate.assign(agreed)
        variables = list(self.model.variables) if weights else []
        variables += self.model.optimizer.variables if optimizer else []
        share_values(self._group, [variable.value for variable in variables])


class Averaging(keras.callbacks.Callback):
    """A callback before the user's callbacks, so that they evaluate and save averaged weights.

    Args:
        average: Sets each worker's own variables to their means; every rank must call it.
    """

    def __init__(self, average: Callable[[], None]) -> None:
        super().__init__()
        self._average = average

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._average()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._average()


def hears_batches(callback: keras.callbacks.Callback) -> bool:
    """Return whether a callback overrides a method that is called for each batch."""
    if isinstance(callback, keras.callbacks.LambdaCallback):
        return any(name in vars(callback) for name in OF_BATCHES)
    plain = keras.callbacks.Callback
    return any(getattr(type(callback), name) is not getattr(plain, name) for name in OF_BATCHES)
