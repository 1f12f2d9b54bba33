"""What we use of TensorFlow, and of Keras on it, that is not public; nowhere else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from keras.src.backend.tensorflow import trainer as keras_trainer


@contextmanager
def epochs_by(iterator: Callable[..., Any]) -> Iterator[None]:
    """Within, `fit` and `evaluate` go over what `iterator(**arguments)` gives instead of Keras's own."""
    before = keras_trainer.TFEpochIterator
    keras_trainer.TFEpochIterator = iterator
    try:
        yield
    finally:
        keras_trainer.TFEpochIterator = before
