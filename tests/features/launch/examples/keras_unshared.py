"""Horovod scripts whose workers do not share the work, by argument: "same", "shuffled" or "apart"."""

import sys

import horovod.tensorflow as hvd
import keras
import numpy as np

import scalestudy

how = sys.argv[1]
if how != "apart":
    hvd.init()
keras.utils.set_random_seed(0 if how == "same" else scalestudy.workers().rank)


class Averaged(keras.optimizers.SGD):
    def apply(self, grads, trainable_variables=None):
        grads = grads if how == "apart" else hvd.grouped_allreduce(grads)
        return super().apply(grads, trainable_variables)


images = np.random.default_rng(0).random((200, 20), dtype="float32")
labels = (images[:, :10].sum(1) > 5).astype("int32")
model = keras.Sequential(
    [keras.Input((20,)), keras.layers.Dense(2, kernel_initializer="zeros")]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=Averaged(0.1), loss=loss, metrics=["accuracy"])
callback = scalestudy.workers().keras_callback("accuracy")
model.fit(images, labels, batch_size=20, epochs=2, verbose=0, callbacks=[callback])
