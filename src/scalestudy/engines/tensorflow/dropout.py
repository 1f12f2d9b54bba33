"""Dropout whose noise belongs to the sample's place in the global batch, not to the worker."""

import hashlib
import math
from typing import Any

import keras
import tensorflow as tf

from scalestudy.engines.tensorflow.context import Working, current

PHILOX = 1
GROUP = 4  # float32 values that one Philox counter gives


@keras.saving.register_keras_serializable(package="scalestudy")
class Dropout(keras.layers.Layer):
    """Dropout under which any number of workers draws the same noise for the same global batch.

    The noise is a counter-based stream (Philox; Salmon et al., SC11): a worker starts at the counter
    of its slice's first sample and draws its own rows only.

    Args:
        rate: Share of the values set to zero.
        seed: Seed of the run.
        index: Number of this layer in its model, so that layers differ.
        spatial: Drop whole channels (of inputs [B, ..., C]).
    """

    def __init__(self, rate: float, seed: int, index: int, spatial: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.draw_by(seed, index, spatial=spatial)

    def draw_by(self, seed: int, index: int, *, spatial: bool) -> None:
        """Draw by this seed of the run, as this layer of its model."""
        self.seed, self.index, self.spatial = seed, index, spatial
        digest = hashlib.sha256(f"dropout {seed} {index}".encode()).digest()
        self._key = int.from_bytes(digest[:8], "little")

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Drop values of `inputs` (shape [B, ...]) in training."""
        worker = current()
        if not training or self.rate == 0 or worker is None:
            return inputs
        start, step = worker.slice.start, worker.slice.step
        again = self._call_of(worker)
        sample = [1] * (len(inputs.shape) - 2) + [inputs.shape[-1]] if self.spatial else _sample_of(inputs)
        values = math.prod(sample)
        groups = -(-values // GROUP)
        rows = tf.shape(inputs)[0]
        noise = tf.raw_ops.StatelessRandomUniformV2(
            shape=tf.stack([rows, groups * GROUP]),
            key=tf.constant([(self._key + again) % 2**64], tf.uint64),
            counter=tf.stack(
                [tf.cast(start * tf.cast(groups, start.dtype), tf.uint64), tf.cast(step, tf.uint64)]
            ),
            alg=PHILOX,
            dtype=tf.float32,
        )
        kept = tf.reshape(noise[:, :values], [rows, *sample]) >= self.rate
        scale = tf.constant(1 / (1 - self.rate), inputs.dtype)
        return inputs * (tf.cast(kept, inputs.dtype) * scale)

    def _call_of(self, worker: Working) -> int:
        """How often this layer has been called before in this step: each time it draws anew."""
        if worker.calls is None:
            return 0
        worker.calls[self.index] += 1
        return worker.calls[self.index] - 1

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same layer again."""
        own = {"rate": self.rate, "seed": self.seed, "index": self.index, "spatial": self.spatial}
        return {**super().get_config(), **own}


def _sample_of(inputs: Any) -> list[Any]:
    """Lengths of one sample's axes; of sequences of any length a tensor."""
    return [
        tf.shape(inputs)[axis] if length is None else length
        for axis, length in enumerate(inputs.shape)
        if axis
    ]
