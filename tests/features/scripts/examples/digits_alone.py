"""A small convolutional network on digits, like many first scripts: arrays, dropout, callbacks."""

import json
import sys
from pathlib import Path

import keras
import numpy as np
from keras import layers

out = Path(sys.argv[1])
keras.utils.set_random_seed(7)

with np.load(sys.argv[2]) as data:
    images, labels = data["images"].astype("float32")[..., None] / 16, data["labels"]
targets = keras.utils.to_categorical(labels, 10)

model = keras.Sequential(
    [
        keras.Input(shape=(8, 8, 1)),
        layers.Conv2D(8, kernel_size=3, activation="relu"),
        layers.MaxPooling2D(pool_size=2),
        layers.Conv2D(16, kernel_size=2, activation="relu"),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])

callbacks = [
    keras.callbacks.CSVLogger(out / "log.csv"),
    keras.callbacks.ModelCheckpoint(out / "best.keras", monitor="val_accuracy", save_best_only=True),
    keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1, min_delta=10),
    keras.callbacks.EarlyStopping(monitor="val_loss", min_delta=10, patience=2, restore_best_weights=True),
]
history = model.fit(
    images, targets, batch_size=16, epochs=5, validation_split=0.1, callbacks=callbacks, verbose=2
)
score = model.evaluate(images, targets, verbose=0)

model.save(out / "model.keras")
(out / "result.json").write_text(json.dumps({"history": history.history, "score": score}))
