"""Records of models, and models that need no framework."""

from typing import Any

import numpy as np

from scalestudy.store.model_record import ModelRecord


def record(
    kind: str = "masks", shape: tuple[int, int, int] = (8, 8, 1), **more: Any
) -> ModelRecord:
    """A model of two classes (masks) or three (classes), trained on 8-bit images."""
    names = ["ground", "thing"] if kind == "masks" else ["a", "b", "c"]
    values = {"task": "unet", "dtype": "uint8", "scale": 1 / 255, "class_names": names}
    return ModelRecord.model_validate(
        {"kind": kind, "input_shape": shape, **values, **more}
    )


class Bright:
    """Predict the second class for bright pixels, using only their first channel."""

    def outputs(self, inputs, scale):
        return (inputs[..., :1] * scale).astype(np.float32)

    def losses(self, inputs, targets, scale):
        return ((self.outputs(inputs, scale)[..., 0] - (targets == 1)) ** 2).mean(
            (1, 2)
        )


class Mean:
    """Predict one of three classes from the mean of an image: dark, medium, bright."""

    def outputs(self, inputs, scale):
        mean = (inputs * scale).reshape(len(inputs), -1).mean(1)
        far = np.abs(mean[:, None] - np.array([0.1, 0.5, 0.9]))
        return (np.exp(-20 * far) / np.exp(-20 * far).sum(1, keepdims=True)).astype(
            np.float32
        )
