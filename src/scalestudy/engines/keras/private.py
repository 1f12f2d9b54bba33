"""All uses of private parts of Keras (known in 3.15)."""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import keras
from keras.src.backend.common import dtypes
from keras.src.utils import file_utils

from scalestudy.util.errors import UserError


def all_layers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Return a layer (or a model) and all its inner layers, outer ones first."""
    return list(layer._flatten_layers())


def layers_in_order(model: keras.Model) -> Iterator[keras.layers.Layer]:
    """Yield all layers of a model, in the order of computation if the model defines it."""
    for layer in model.layers:
        yield layer
        if isinstance(layer, keras.Model):
            yield from layers_in_order(layer)
        else:
            yield from all_layers(layer)[1:]


def untrainable(model: keras.Model) -> list[keras.Variable]:
    """Return the weights of a model that its layers made as not trainable; freezing a layer adds none."""
    seeds: set[int] = set()
    weights: list[keras.Variable] = []
    for layer in all_layers(model):
        # A layer may hold the state of its seed generator as a weight of its own.
        seeds.update(id(generator.state) for generator in seed_generators(layer))
        weights += layer._non_trainable_variables
    return [weight for weight in weights if id(weight) not in seeds]


def exchange_variables(
    layer: keras.layers.Layer, variables: dict[str, keras.Variable]
) -> None:
    """Replace variables of a built layer, by attribute name; the new ones come last in `layer.variables`."""
    for name in variables:
        layer._untrack_variable(getattr(layer, name))
    # A built layer refuses new variables while its tracker is locked.
    layer._tracker.unlock()
    for name, variable in variables.items():
        setattr(layer, name, variable)
    layer._tracker.lock()


def settable_rate(optimizer: keras.optimizers.Optimizer) -> Any:
    """Return the variable of an optimizer's learning rate, or None if it has a schedule."""
    rate = optimizer._learning_rate
    if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        return None
    return rate


def take_summed(optimizer: keras.optimizers.Optimizer) -> None:
    """Prevent an optimizer from summing gradients over replicas, as Keras does under tf.distribute."""

    def unchanged(gradients_and_variables: Any) -> Any:
        return gradients_and_variables

    optimizer._all_reduce_sum_gradients = unchanged


def replace_update(
    optimizer: keras.optimizers.Optimizer, update: Callable[..., None]
) -> None:
    """Make an optimizer update by `update(gradients, variables, rate)`, which also applies weight decay."""
    optimizer._backend_update_step = update
    # Keras decays the weights before the update, which would do it once more.
    optimizer._apply_weight_decay = lambda variables: None


def moments_of(
    optimizer: keras.optimizers.Optimizer, variable: keras.Variable
) -> list[keras.Variable]:
    """Return the moments that SGD or Adam keeps for a variable."""
    index = optimizer._get_variable_index(variable)
    if isinstance(optimizer, keras.optimizers.SGD):
        return [optimizer.momentums[index]]
    return [optimizer._momentums[index], optimizer._velocities[index]]


def forbid_downloads() -> None:
    """Make downloads by `keras.utils.get_file`, which `keras.applications` uses for weights, raise an error.

    Compute nodes often have no network, and a download would hang until the end of the job. With a network,
    many workers would fetch the same file at once.
    """

    def refuse(url: str, *_: Any, **__: Any) -> NoReturn:
        raise UserError(
            "the weights and other files of the task to be present before the run",
            f"a download of {url} in a worker",
            "Run `scalestudy data prepare STUDY` where there is a network, with the same KERAS_HOME.",
        )

    file_utils.urlretrieve = refuse


def keep_wide_types() -> None:
    """Make Keras keep 64-bit types, as on TensorFlow; on other backends it converts them to 32 bits."""
    dtypes.BIT64_TO_BIT32_DTYPE.update({"int64": "int64", "float64": "float64"})


def seed_generators(layer: keras.layers.Layer) -> list[Any]:
    """Return the seed generators of a layer, without those of inner layers."""
    return list(layer._seed_generators)
