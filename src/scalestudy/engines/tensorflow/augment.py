"""Training samples changed on the device, and the loss of mixed ones."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf

from scalestudy.data.columns import map_columns
from scalestudy.data.loading.augment.mixing import two_targets
from scalestudy.data.loading.augment.reader import FIRST, IMAGE, SECOND, SHARE
from scalestudy.data.loading.augment.warp import bicubic
from scalestudy.data.loading.slices import Slice
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.tensorflow.staging import scaled_inputs, typed
from scalestudy.study.augmentation import GEOMETRIC, parsed
from scalestudy.tasks.base import Task
from scalestudy.util.errors import UserError


class Augmentation:
    """What of a study's augmentation is left to the engine.

    Args:
        text: As the study file says it.
        where: "loader" or "device".
        prepared: The data set.
    """

    def __init__(self, text: str, where: str, prepared: Prepared) -> None:
        operations = parsed(text)
        self._scale = prepared.scale
        self._whole = prepared.scale is not None and prepared.inputs.dtype.kind in "ui"
        self._masks = prepared.kind == "masks"
        self._on_device = where == "device"
        self._mixed = two_targets(operations, masks=self._masks)
        self._moves = any(each.kind in GEOMETRIC for each in operations)
        self._sigma = next((float(each["sigma"]) for each in operations if each.kind == "noise"), 0.0)

    def of_task(self, task: Task) -> Task:
        """The task, with the loss of mixed samples where there are any.

        Of two targets it is the sum of their losses by their shares: for losses that are linear in the target
        (cross-entropy) that of mixed targets (Zhang 2018, section 2), and defined for all.

        Raises:
            UserError: If the task computes its training losses itself.
        """
        if self._mixed and task.training_losses is not None:
            raise UserError(
                "a task without training_losses for samples that are mixed (mixup, cutmix)",
                "one that computes its losses itself",
                "Mix the samples there, or remove it from train.augment.",
            )
        return replace(task, loss=_of_both(task.loss)) if self._mixed else task

    def ready(self, part: Slice) -> Slice:
        """What goes into the model: scaled, and changed if that is left to the device."""
        if self._scale is None:
            return part._replace(inputs=typed(part.inputs), targets=typed(part.targets))
        if not (self._on_device and isinstance(part.inputs, dict)):
            return part._replace(inputs=scaled_inputs(part.inputs, self._scale))
        told = part.inputs
        images, targets = scaled_inputs(told[IMAGE], self._scale), part.targets
        if "matrix" in told or "displacement" in told:
            at = _coordinates(told.get("matrix"), told.get("displacement"), images.shape[1:3])
            images = _bilinear(images, at)
            if self._masks:
                targets = self._moved(targets, at)
        images = _lit(images, told, self._sigma)
        return part._replace(
            inputs=tf.clip_by_value(images, 0, 1) if self._whole else images, targets=targets
        )

    def _moved(self, targets: Any, at: Any) -> Any:
        return map_columns(lambda mask: mask if len(mask.shape) < 3 else _nearest(mask, at), targets)


def _of_both(loss: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def of_both(targets: Any, outputs: Any) -> Any:
        first, second = loss(targets[FIRST], outputs), loss(targets[SECOND], outputs)
        share = tf.cast(targets[SHARE], first.dtype)
        return share * first + (1 - share) * second

    return of_both


def _coordinates(matrix: Any, displacement: Any, size: Any) -> Any:
    """Rows and columns that pixels are taken from, shape [b, 2, H, W], as `data.augment.warp` has it."""
    height, width = (int(length) for length in size)
    centre = tf.constant([(height - 1) / 2, (width - 1) / 2], tf.float32)[:, None, None]
    axes = tf.meshgrid(tf.range(height, dtype=tf.float32), tf.range(width, dtype=tf.float32), indexing="ij")
    grid = tf.stack(axes)[None] - centre
    if matrix is not None:
        grid = tf.einsum("bij,jhw->bihw", matrix[:, :, :2], grid[0]) + matrix[:, :, 2, None, None]
    if displacement is not None:
        nodes = displacement.shape[-1]
        down, across = (tf.constant(bicubic(length, nodes), tf.float32) for length in (height, width))
        grid = grid + tf.einsum("hg,bcgk,wk->bchw", down, displacement, across)
    return grid + centre


def _bilinear(images: Any, at: Any) -> Any:
    low = tf.floor(at)
    share = tf.cast(at - low, images.dtype)[..., None]
    down, across = share[:, 0], share[:, 1]

    def corner(row: float, column: float) -> Any:
        return _taken(images, low[:, 0] + row, low[:, 1] + column)

    upper = corner(0, 0) * (1 - across) + corner(0, 1) * across
    lower = corner(1, 0) * (1 - across) + corner(1, 1) * across
    return upper * (1 - down) + lower * down


def _nearest(masks: Any, at: Any) -> Any:
    near = tf.round(at)
    return _taken(masks[..., None], near[:, 0], near[:, 1])[..., 0]


def _taken(images: Any, rows: Any, columns: Any) -> Any:
    """Pixels [b, H, W, C] at whole rows and columns [b, H, W], reflected where they are beyond the border."""
    height, width, channels = (int(length) for length in images.shape[1:])
    flat = tf.reshape(images, (-1, height * width, channels))
    place = _mirrored(rows, height) * width + _mirrored(columns, width)
    taken = tf.gather(flat, tf.reshape(tf.cast(place, tf.int64), (-1, height * width)), batch_dims=1)
    return tf.reshape(taken, (-1, height, width, channels))


def _mirrored(index: Any, length: int) -> Any:
    # In floating-point numbers: whole ones of 32 bits are computed by the host.
    period = float(max(2 * (length - 1), 1))
    index = tf.abs(index)
    index = index - period * tf.floor(index / period)
    return tf.minimum(tf.minimum(index, period - index), float(length - 1))


def _lit(images: Any, told: dict[str, Any], sigma: float) -> Any:
    def of(name: str) -> Any:
        return tf.cast(told[name], images.dtype)[:, None, None, None]

    if "contrast" in told:
        mean = tf.reduce_mean(images, axis=(1, 2, 3), keepdims=True)
        images = (images - mean) * of("contrast") + mean
    if "brightness" in told:
        images = images + of("brightness")
    if "noise" in told:
        shape = images.shape[1:]
        noise = tf.map_fn(
            lambda seed: tf.random.stateless_normal(shape, tf.stack([seed, tf.zeros_like(seed)])),
            told["noise"],
            fn_output_signature=tf.TensorSpec(shape, tf.float32),
        )
        images = images + tf.cast(noise, images.dtype) * tf.cast(sigma, keras.config.floatx())
    return images
