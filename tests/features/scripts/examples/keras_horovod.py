"""Keras 3 and Horovod: gradients averaged in the optimizer, measured by a callback. As in the guide."""

import horovod.tensorflow as hvd
import keras
import numpy as np

import scalestudy

workers = scalestudy.workers()
keras.utils.set_random_seed(workers.seed)
hvd.init()


class Averaged(keras.optimizers.Adam):
    """Adam on the gradients of all workers."""

    def apply(self, grads, trainable_variables=None):
        return super().apply(hvd.grouped_allreduce(grads), trainable_variables)


images = np.random.default_rng(0).random((1000, 20), dtype="float32")
labels = (images[:, :10].sum(1) > 5).astype("int32")
mine = slice(hvd.rank(), None, hvd.size())  # this worker's share
train = images[:800][mine], labels[:800][mine]
test = images[800:][mine], labels[800:][mine]

model = keras.Sequential(
    [keras.Input((20,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(2)]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=Averaged(1e-2 * hvd.size()), loss=loss, metrics=["accuracy"])
hvd.broadcast_variables([variable.value for variable in model.variables], root_rank=0)
model.fit(
    *train,
    batch_size=16,
    epochs=6,
    validation_data=test,
    verbose=2 if hvd.rank() == 0 else 0,
    callbacks=[workers.keras_callback("val_accuracy")],
)
