"""Replacing, in a user's model, the layers whose meaning would depend on the workers."""

import itertools
from collections.abc import Iterator

import keras
from keras import layers

from scalestudy.engines.keras.private import all_layers, is_composed
from scalestudy.engines.tensorflow.batch_norm import BatchNorm
from scalestudy.engines.tensorflow.dropout import Dropout
from scalestudy.util.errors import UserError


def adapt(model: keras.Model, *, seed: int, sync_batch_norm: bool) -> keras.Model:
    """The same model with our batch normalisation and dropout in place of Keras's.

    Weights are carried over; all other layers are shared with the given model. Layers cannot be exchanged
    inside of layers and models of other classes, as those of other libraries: they are changed in place.

    Args:
        model: Built.
        seed: Seed of the run, for dropout.
        sync_batch_norm: Whether the run asks for synchronised statistics.

    Raises:
        UserError: If synchronised batch normalisation is asked for and a layer cannot have it.
    """
    changed = [layer for layer in all_layers(model) if _replaceable(layer)]
    stuck = _stuck(model)
    if sync_batch_norm and stuck:
        raise UserError(
            "batch normalisation over the last axis, without renormalisation, for sync_batch_norm",
            f"another in the layer {stuck[0]}",
            "Put channels last, or set sync_batch_norm = false.",
        )
    if not changed:
        return model
    number = itertools.count()

    def replace(layer: keras.layers.Layer) -> keras.layers.Layer:
        if not _replaceable(layer):
            return layer
        common = {"name": layer.name, "dtype": layer.dtype_policy}
        if isinstance(layer, layers.BatchNormalization):
            ours = BatchNorm.from_config({**layer.get_config(), "synchronized": False})
            ours.trainable = layer.trainable
            return ours
        return Dropout(
            layer.rate, seed, next(number), spatial=not isinstance(layer, layers.Dropout), **common
        )

    if is_composed(model) and all(map(is_composed, _models(model))):
        clone = keras.models.clone_model(model, clone_function=replace, recursive=True)
        clone.set_weights(model.get_weights())
        model = clone
    for layer in all_layers(model):
        if _replaceable(layer):
            _change(layer, seed, number)
    return model


def _models(model: keras.Model) -> list[keras.Model]:
    return [layer for layer in all_layers(model) if isinstance(layer, keras.Model)]


def _change(layer: keras.layers.Layer, seed: int, number: Iterator[int]) -> None:
    """Make ours of one of Keras's layers, where it is."""
    if isinstance(layer, layers.BatchNormalization):
        layer.__class__ = BatchNorm
        layer.keep_statistics()
    else:
        spatial = not isinstance(layer, layers.Dropout)
        layer.__class__ = Dropout
        layer.draw_by(seed, next(number), spatial=spatial)


def _replaceable(layer: keras.layers.Layer) -> bool:
    if isinstance(layer, BatchNorm | Dropout):
        return False
    if isinstance(layer, layers.BatchNormalization):
        return not layer.renorm and layer.axis in (
            -1,
            len(layer.input_spec.axes or {}) - 1,
            layer.input_spec.ndim - 1,
        )
    if isinstance(layer, layers.Dropout):
        return layer.noise_shape is None
    return isinstance(
        layer, layers.SpatialDropout1D | layers.SpatialDropout2D | layers.SpatialDropout3D
    ) and (getattr(layer, "data_format", "channels_last") == "channels_last")


def _stuck(model: keras.Model) -> list[str]:
    """Names of the batch normalisations that cannot be ours."""
    return [
        layer.name
        for layer in all_layers(model)
        if isinstance(layer, layers.BatchNormalization)
        and not isinstance(layer, BatchNorm)
        and not _replaceable(layer)
    ]
