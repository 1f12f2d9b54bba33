"""The dynamic loss scale of float16."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from scalestudy.engines.tensorflow.gradients import Gradients

GROW_AFTER = 2000
START = 2.0**15


class LossScale:
    """Dynamic loss scale, so that float16 gradients neither underflow nor overflow.

    The scale is halved if a gradient is not finite (the step is skipped), and doubled after 2,000 good steps
    (Micikevicius et al. 2018, arXiv:1710.03740). A value that is not finite on one worker is not finite in
    the sum either, so all workers decide the same without further exchange.
    """

    def __init__(self) -> None:
        self.variables = [
            keras.Variable(START, trainable=False, dtype="float32"),
            keras.Variable(0, trainable=False, dtype="int64"),
        ]
        self.value, self.good = (variable.value for variable in self.variables)

    def overflow(self, gradients: Gradients) -> Any:
        """Return whether any of the summed gradients is not finite."""
        finite = [tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients]
        return tf.logical_not(tf.reduce_all(finite))

    def guard(self, overflow: Any, update: Callable[[], None]) -> None:
        """Call `update` unless `overflow` is true; then adjust the scale."""

        def good() -> Any:
            update()
            full = self.good + 1 >= GROW_AFTER
            self.value.assign(tf.where(full, self.value * 2, self.value))
            self.good.assign(tf.where(full, tf.zeros([], tf.int64), self.good + 1))
            return tf.constant(0)

        def bad() -> Any:
            self.value.assign(tf.maximum(self.value / 2, 1.0))
            self.good.assign(0)
            return tf.constant(0)

        tf.cond(overflow, bad, good)
