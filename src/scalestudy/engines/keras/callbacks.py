"""Running a task's Keras callbacks."""

from collections.abc import Sequence

import keras

from scalestudy.config.objectives import UNKNOWN
from scalestudy.tasks.task import Task
from scalestudy.util.errors import UserError

WATCHING = (
    keras.callbacks.EarlyStopping,
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.ReduceLROnPlateau,
)
"""Keras's callbacks that watch a metric."""


def refuse_moving_averages(callbacks: Sequence[keras.callbacks.Callback]) -> None:
    """Reject SwapEMAWeights, which requires an optimizer that keeps moving averages of the weights.

    Raises:
        UserError: If it is among `callbacks`.
    """
    if any(isinstance(callback, keras.callbacks.SwapEMAWeights) for callback in callbacks):
        raise UserError(
            "callbacks that need no moving averages of the optimizer, since the study makes it",
            "SwapEMAWeights among the task's callbacks",
            "Average the weights in a callback of your own, and set them in its on_train_end.",
        )


class KerasCallbacks:
    """Calls a task's Keras callbacks, which may change the optimizer of the model; see `Callbacks`.

    Callbacks that monitor a metric with `mode="auto"` get the better direction from the task. Keras would
    look for it in a compiled model, and fail.
    """

    def __init__(self, task: Task, *, epochs: int, steps: int) -> None:
        self._model = task.model
        for callback in task.callbacks:
            if isinstance(callback, WATCHING) and callback.mode == "auto":
                better = task.senses.get(callback.monitor.removeprefix("val_"), UNKNOWN).better
                callback.mode = {"higher": "max", "lower": "min", None: "auto"}[better]
        self._list = keras.callbacks.CallbackList(
            task.callbacks, model=task.model, epochs=epochs, steps=steps, verbose=0
        )
        task.model.stop_training = False

    def begin(self) -> None:
        self._list.on_train_begin()

    def epoch_begin(self, epoch: int) -> None:
        self._list.on_epoch_begin(epoch)

    def batch_end(self, step: int) -> None:
        self._list.on_train_batch_end(step)

    def epoch_end(self, epoch: int, logs: dict[str, float]) -> bool:
        self._list.on_epoch_end(epoch, logs)
        return bool(self._model.stop_training)

    def end(self, logs: dict[str, float]) -> None:
        self._list.on_train_end(logs)
