"""A small U-Net on images and masks read from files, batch by batch, as segmentation scripts do."""

import json
import sys
from pathlib import Path

import keras
import numpy as np
from keras import layers

out, folder = Path(sys.argv[1]), Path(sys.argv[2])
keras.utils.set_random_seed(11)


class Pictures(keras.utils.PyDataset):
    """Images and masks with these names, `batch_size` at a time."""

    def __init__(self, names, batch_size):
        super().__init__()
        self.names, self.batch_size = names, batch_size

    def __len__(self):
        return (len(self.names) + self.batch_size - 1) // self.batch_size

    def __getitem__(self, index):
        chosen = self.names[index * self.batch_size : (index + 1) * self.batch_size]
        read = lambda kind, name: keras.utils.img_to_array(  # noqa: E731
            keras.utils.load_img(folder / kind / name, color_mode="grayscale")
        )
        images = np.stack([read("images", name) for name in chosen]) / 255
        masks = np.stack([read("masks", name) for name in chosen]) > 127
        return images, masks.astype("uint8")


def block(x, filters):
    x = layers.SeparableConv2D(filters, 3, padding="same", use_bias=False)(x)
    return layers.Activation("relu")(layers.BatchNormalization(synchronized=True)(x))


inputs = keras.Input((16, 16, 1))
wide = block(inputs, 4)
deep = block(layers.MaxPooling2D(2)(wide), 8)
up = layers.concatenate([layers.UpSampling2D(2)(deep), wide])
outputs = layers.Conv2D(2, 3, activation="softmax", padding="same")(block(up, 4))
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
)

names = sorted(path.name for path in (folder / "images").iterdir())
training, validation = Pictures(names[:-6], batch_size=5), Pictures(names[-6:], batch_size=4)
best = keras.callbacks.ModelCheckpoint(out / "best.keras", save_best_only=True)
history = model.fit(training, epochs=2, validation_data=validation, callbacks=[best], verbose=2)
first, _ = validation[0]
answer = model.predict(first, verbose=0)

(out / "result.json").write_text(
    json.dumps({"history": history.history, "answer": float(answer[0, 0, 0, 0])})
)
