"""All uses of private parts of Keras (known in 3.15)."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import keras
import numpy as np
from keras import ops
from keras.src.backend.common import dtypes
from keras.src.utils import file_utils, module_utils

from scalestudy.engines.keras.layer_context import current
from scalestudy.tasks.label_losses import LOGITS
from scalestudy.util.errors import UserError


def all_layers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Return a layer (or a model) and all its inner layers, outer ones first."""
    return list(layer._flatten_layers())


def in_order(model: keras.Model) -> Iterator[keras.layers.Layer]:
    """Yield all layers of a model, in the order of computation if the model defines it."""
    for layer in model.layers:
        yield layer
        yield from in_order(layer) if isinstance(layer, keras.Model) else all_layers(layer)[1:]


def untrainable(model: keras.Model) -> list[keras.Variable]:
    """Return the weights of a model that its layers made as not trainable; freezing a layer adds none."""
    seeds = {id(generator.state) for layer in all_layers(model) for generator in seed_generators(layer)}
    weights = [weight for layer in all_layers(model) for weight in layer._non_trainable_variables]
    return [weight for weight in weights if id(weight) not in seeds]


def exchange_variables(layer: keras.layers.Layer, variables: dict[str, keras.Variable]) -> None:
    """Replace variables of a built layer, by attribute name; the new ones come last in `layer.variables`."""
    for name in variables:
        layer._untrack_variable(getattr(layer, name))
    layer._tracker.unlock()
    for name, variable in variables.items():
        setattr(layer, name, variable)
    layer._tracker.lock()


def settable_rate(optimizer: keras.optimizers.Optimizer) -> Any:
    """Return the variable of an optimizer's learning rate, or None if it has a schedule."""
    rate = optimizer._learning_rate
    return None if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule) else rate


def take_summed(optimizer: keras.optimizers.Optimizer) -> None:
    """Prevent an optimizer from summing gradients over replicas, as Keras does under tf.distribute."""
    optimizer._all_reduce_sum_gradients = lambda gradients_and_variables: gradients_and_variables


def replace_update(optimizer: keras.optimizers.Optimizer, update: Callable[..., None]) -> None:
    """Make an optimizer update by `update(gradients, variables, rate)`, which also applies weight decay."""
    optimizer._backend_update_step = update
    optimizer._apply_weight_decay = lambda variables: None


def moments_of(optimizer: keras.optimizers.Optimizer, variable: keras.Variable) -> list[keras.Variable]:
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


def without_tensorflow() -> None:
    """Prevent Keras on another backend from importing TensorFlow, just to set its seed, for seconds."""
    module_utils.tensorflow._available = False


def draw_by(draws: Mapping[str, Callable[..., Any]]) -> None:
    """Make Keras on PyTorch draw "uniform", "normal" and "truncated_normal" numbers with these functions.

    Each function takes (seed of two numbers, count, dtype, device) and returns numbers of the standard
    distribution, shape [count], float32 or float64. In training steps the seed is None: reading it would wait
    for a GPU.
    """
    from keras.src.backend.torch import core, random  # which import PyTorch
    from keras.src.random.seed_generator import draw_seed

    def replaced(plain: Callable[..., Any], draw: Callable[..., Any], *, spread: bool) -> Callable[..., Any]:
        def drawn(
            shape: Any, first: float = 0.0, second: float = 1.0, dtype: Any = None, seed: Any = None
        ) -> Any:
            kind, device = core.to_torch_dtype(dtype or keras.config.floatx()), core.get_device()
            if device == "meta" or kind.itemsize < 4:
                return plain(shape, first, second, dtype=dtype, seed=seed)
            numbers = draw(
                draw_seed(seed).tolist() if current() is None else None, math.prod(shape), kind, device
            ).view(tuple(shape))
            return numbers * (second if spread else second - first) + first

        def by_bounds(shape: Any, minval: float = 0.0, maxval: float = 1.0, **more: Any) -> Any:
            # TensorFlow converts the bounds to float32 for every type.
            return drawn(shape, *(float(np.float32(bound)) for bound in (minval, maxval)), **more)

        def by_spread(shape: Any, mean: float = 0.0, stddev: float = 1.0, **more: Any) -> Any:
            return drawn(shape, mean, stddev, **more)

        return by_spread if spread else by_bounds

    for name, draw in draws.items():
        setattr(random, name, replaced(getattr(random, name), draw, spread=name != "uniform"))


def losses_by_logits() -> None:
    """Make Keras's cross-entropies on PyTorch use the logits before a softmax or sigmoid, as on TensorFlow.

    By default they clip the probabilities on PyTorch, where the gradient then vanishes.
    """
    from keras.src.backend.torch import nn  # which imports PyTorch

    def by_logits(plain: Callable[..., Any]) -> Callable[..., Any]:
        def entropies(target: Any, output: Any, from_logits: bool = False, **more: Any) -> Any:
            logits = getattr(output, LOGITS, None)
            if logits is None:
                return plain(target, output, from_logits=from_logits, **more)
            return plain(target, logits, from_logits=True, **more)

        return entropies

    for name in ("binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy"):
        setattr(nn, name, by_logits(getattr(nn, name)))


def keep_layout() -> None:
    """Make Keras's convolutions and pooling on PyTorch use channels-last inputs without copying them.

    By default Keras copies inputs to channels first, and for convolutions back. PyTorch computes in both
    layouts; a view with permuted axes has its `channels_last` memory format.
    """
    from keras.src.backend.torch import nn  # which imports PyTorch

    nn._transpose_spatial_inputs = lambda inputs: inputs.movedim(-1, 1)


def fuse_bias() -> None:
    """Make Keras's convolutions on PyTorch add the bias in the same kernel, not in a second pass."""
    from keras.src.backend.torch import nn  # which import PyTorch
    from keras.src.layers.convolutional.base_conv import BaseConv
    from keras.src.layers.convolutional.base_conv_transpose import BaseConvTranspose
    from torch.nn import functional

    plain = BaseConv.call
    convolutions = functional.conv1d, functional.conv2d, functional.conv3d

    def call(layer: Any, inputs: Any) -> Any:
        padded = layer.padding in ("valid", "same") and layer.data_format == "channels_last"
        if not (layer.use_bias and padded and type(layer).convolution_op is BaseConv.convolution_op):
            return plain(layer, inputs)
        x = nn._transpose_spatial_inputs(inputs)
        kernel = nn._transpose_conv_kernel(ops.convert_to_tensor(layer.kernel))
        kernel = nn._maybe_convert_to_channels_last(kernel)
        padding: Any = 0
        if layer.padding == "same":
            x, padding = nn._apply_same_padding(
                x, kernel.shape[2:], layer.strides, layer.data_format, "conv", layer.dilation_rate
            )
        outputs = convolutions[layer.rank - 1](
            x,
            kernel,
            ops.convert_to_tensor(layer.bias),
            stride=layer.strides,
            padding=padding,
            dilation=layer.dilation_rate,
            groups=layer.groups,
        ).movedim(1, -1)
        return outputs if layer.activation is None else layer.activation(outputs)

    plain_transposed = BaseConvTranspose.call
    transposed = functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d

    def call_transposed(layer: Any, inputs: Any) -> Any:
        whole = layer.kernel_size == layer.strides and layer.output_padding is None  # nothing is cut off
        last = layer.data_format == "channels_last" and set(layer.dilation_rate) == {1}
        if not (layer.use_bias and whole and last):
            return plain_transposed(layer, inputs)
        outputs = transposed[layer.rank - 1](
            nn._transpose_spatial_inputs(inputs),
            nn._transpose_conv_kernel(ops.convert_to_tensor(layer.kernel)),
            ops.convert_to_tensor(layer.bias),
            stride=layer.strides,
        ).movedim(1, -1)
        return outputs if layer.activation is None else layer.activation(outputs)

    BaseConv.call, BaseConvTranspose.call = call, call_transposed


def seed_generators(layer: keras.layers.Layer) -> list[Any]:
    """Return the seed generators of a layer, without those of inner layers."""
    return list(layer._seed_generators)
