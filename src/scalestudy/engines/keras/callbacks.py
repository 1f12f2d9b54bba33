"""Keras callbacks, which know a model with its optimizer."""

from collections.abc import Sequence

import keras

from scalestudy.errors import UserError


def refuse_moving_averages(callbacks: Sequence[keras.callbacks.Callback]) -> None:
    """Refuse the callback of Keras that only works with an optimizer which averages weights itself.

    Raises:
        UserError: If it is among `callbacks`.
    """
    if any(isinstance(each, keras.callbacks.SwapEMAWeights) for each in callbacks):
        raise UserError(
            "callbacks that ask no moving averages of the optimizer, which the study names and makes",
            "SwapEMAWeights among the task's callbacks",
            "Average the weights in a callback of your own, and set them in its on_train_end.",
        )


class KerasCallbacks:
    """Calls a task's Keras callbacks.

    Args:
        callbacks: The task's.
        model: The model; its `optimizer` is what they may set.
        epochs: Epochs of the run.
        steps: Steps of an epoch.
    """

    def __init__(
        self, callbacks: list[keras.callbacks.Callback], model: keras.Model, *, epochs: int, steps: int
    ) -> None:
        self._model = model
        self._list = keras.callbacks.CallbackList(
            callbacks, model=model, epochs=epochs, steps=steps, verbose=0
        )
        model.stop_training = False

    def begin(self) -> None:
        """Training begins."""
        self._list.on_train_begin()

    def epoch_begin(self, epoch: int) -> None:
        """Epoch `epoch`, from 0, begins."""
        self._list.on_epoch_begin(epoch)

    def batch_end(self, step: int) -> None:
        """The call that ends with step `step` of the epoch is done."""
        self._list.on_train_batch_end(step)

    def epoch_end(self, epoch: int, logs: dict[str, float]) -> bool:
        """Epoch `epoch` is over; returns whether a callback wants training to stop."""
        self._list.on_epoch_end(epoch, logs)
        return bool(self._model.stop_training)

    def end(self, logs: dict[str, float]) -> None:
        """Training is over."""
        self._list.on_train_end(logs)
