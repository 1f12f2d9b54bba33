"""The scale of a float16 loss."""

from typing import Any

import tensorflow as tf

GROW_AFTER = 2000
START = 2.0**15


class LossScale:
    """Dynamic scale of the loss, so that float16 gradients neither vanish nor overflow.

    Halved when a gradient is not finite (that step is left out), doubled after 2,000 good steps
    (Micikevicius et al. 2018, arXiv:1710.03740). Without float16 it is 1 and never looks.
    """

    def __init__(self, active: bool) -> None:
        self.active = active
        if active:
            self.value = tf.Variable(START, trainable=False, dtype=tf.float32)
            self.good = tf.Variable(0, trainable=False, dtype=tf.int64)

    def variables(self) -> list[Any]:
        """What must be restored with the model."""
        return [self.value, self.good] if self.active else []

    def scale(self, loss: Any) -> Any:
        """The loss that gradients are taken of."""
        return loss * tf.cast(self.value, loss.dtype) if self.active else loss

    def unscale(self, gradients: list[Any]) -> list[Any]:
        """Gradients of the loss itself."""
        if not self.active:
            return gradients
        return [gradient / tf.cast(self.value, gradient.dtype) for gradient in gradients]

    def overflow(self, gradients: list[Any]) -> Any:
        """Whether any gradient is not finite."""
        finite = [tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients]
        return tf.logical_not(tf.reduce_all(finite))

    def guard(self, overflow: Any, update: Any) -> None:
        """Call `update` unless `overflow` (of the summed gradients) is true; then adjust the scale."""

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
