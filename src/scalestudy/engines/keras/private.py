"""What we use of Keras that it does not promise to keep; nowhere else. Known in 3.15."""

from collections.abc import Callable
from typing import Any

import keras
from keras.src.models.functional import Functional
from keras.src.utils import file_utils


def all_layers(model: keras.Model) -> list[keras.layers.Layer]:
    """All layers of a model, those inside of others included."""
    return list(model._flatten_layers())


def layers_within(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """A layer and all those inside of it, outer ones first."""
    return list(layer._flatten_layers())


def is_composed(layer: Any) -> bool:
    """Whether a layer is a Sequential or functional model, whose layers can be exchanged."""
    return type(layer) in (keras.Sequential, Functional)


def exchange_variables(layer: keras.layers.Layer, variables: dict[str, keras.Variable]) -> None:
    """Put other variables, by the names of the attributes, into a built layer; each after all that it has."""
    for name in variables:
        layer._untrack_variable(getattr(layer, name))
    layer._tracker.unlock()
    for name, variable in variables.items():
        setattr(layer, name, variable)
    layer._tracker.lock()


def settable_rate(optimizer: keras.optimizers.Optimizer) -> Any:
    """The variable of an optimizer's learning rate; None where a schedule rules."""
    rate = optimizer._learning_rate
    return None if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule) else rate


def take_summed(optimizer: keras.optimizers.Optimizer) -> None:
    """Let an optimizer take gradients as they are, where under tf.distribute it would sum them itself."""
    optimizer._all_reduce_sum_gradients = lambda gradients_and_variables: gradients_and_variables


def replace_downloads(download: Callable[..., Any]) -> None:
    """Let `keras.utils.get_file` fetch by `download(url, ...)`."""
    file_utils.urlretrieve = download
