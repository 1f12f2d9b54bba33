"""Baseline of the benchmarks: plain Keras 3 `model.fit` with the published tf.data pipeline.

`python keras_fit.py unet|cnn ARRAYS.npz BATCH EPOCHS auto|plain` prints samples per second without the first
epoch. "auto" is Keras's default, which compiles with XLA where it can; "plain" switches that off.
"""

import sys
import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf


def main(task: str, arrays: str, batch: int, epochs: int, compiled: str) -> None:
    keras.utils.set_random_seed(0)
    jit = "auto" if compiled == "auto" else False
    stored = np.load(arrays)
    inputs, targets = stored["inputs"], stored["targets"]

    def decode(x: Any, y: Any) -> Any:
        return tf.cast(x, tf.float32) / 255, (
            tf.cast(y, tf.float32)[..., None] if task == "unet" else y
        )

    data = tf.data.Dataset.from_tensor_slices((inputs, targets)).map(
        decode, num_parallel_calls=tf.data.AUTOTUNE
    )
    data = data.cache().shuffle(1000).batch(batch).prefetch(tf.data.AUTOTUNE)
    if task == "unet":
        from scalestudy.tasks.unet import unet

        model = unet(inputs.shape[1:], 2)
        model.compile("adam", "binary_crossentropy", jit_compile=jit)
    else:
        from scalestudy.tasks.cnn import cnn

        model = cnn(inputs.shape[1:], 10)
        model.compile(
            "adam",
            "sparse_categorical_crossentropy",
            metrics=["accuracy"],
            jit_compile=jit,
        )

    class Clock(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.start = time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seconds.append(time.perf_counter() - self.start)

    seconds: list[float] = []
    model.fit(data, epochs=epochs, callbacks=[Clock()], verbose=0)
    print("THROUGHPUT", len(inputs) * (epochs - 1) / sum(seconds[1:]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
