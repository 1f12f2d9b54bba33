"""What the callbacks of rank 0 decide, told to all workers."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from scalestudy.engines.group import Group
from scalestudy.engines.keras.private import first_epoch, settable_rate
from scalestudy.engines.tensorflow.strategies.replicas import share_values

HARMLESS = (
    keras.callbacks.ModelCheckpoint, keras.callbacks.TensorBoard, keras.callbacks.BackupAndRestore,
    keras.callbacks.CSVLogger, keras.callbacks.History, keras.callbacks.ProgbarLogger,
    keras.callbacks.RemoteMonitor,
)  # fmt: skip
"""Keras's callbacks that decide nothing once training has begun: stops, rates or weights."""
OF_BATCHES = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")


class Together(keras.callbacks.Callback):
    """Comes after the user's callbacks, and is the only one of the other ranks: they do as rank 0 does.

    Args:
        group: The processes.
        callbacks: The user's, as this rank has them; only rank 0's are called.
    """

    def __init__(self, group: Group, callbacks: Sequence[keras.callbacks.Callback]) -> None:
        super().__init__()
        deciding = [callback for callback in callbacks if type(callback) not in HARMLESS]
        batches = any(map(hears_batches, deciding))
        careful, each_batch = group.share(np.array([bool(deciding), batches], np.int64))
        self._group, self._careful, self._each_batch = group, bool(careful), bool(each_batch)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Begin with what rank 0 has, which a callback may have restored."""
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
    """Comes before the user's callbacks: what they evaluate and save are the weights of all workers.

    Args:
        average: Sets what each worker keeps for itself to its mean over all; every rank must ask.
    """

    def __init__(self, average: Callable[[], None]) -> None:
        super().__init__()
        self._average = average

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._average()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._average()


def hears_batches(callback: keras.callbacks.Callback) -> bool:
    """Whether a callback is told of batches."""
    if isinstance(callback, keras.callbacks.LambdaCallback):
        return any(name in vars(callback) for name in OF_BATCHES)
    plain = keras.callbacks.Callback
    return any(getattr(type(callback), name) is not getattr(plain, name) for name in OF_BATCHES)
