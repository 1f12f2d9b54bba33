"""Private parts of Keras (known in 3.15) and TensorFlow (2.21); no other file uses any."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import keras
import numpy as np
from keras import ops
from keras.src.backend import get_keras_mask
from keras.src.backend.common import dtypes
from keras.src.losses.loss import apply_mask, squeeze_or_expand_to_same_rank
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator
from keras.src.utils import file_utils, module_utils

from scalestudy.tasks.labels import LOGITS
from scalestudy.util.errors import UserError

READ = "scalestudy-read"
"""By this name TensorFlow calls a function of Python where a graph runs, in whatever process that is."""
_offered: list[Callable[..., Any]] = []
"""TensorFlow itself only remembers what somebody else holds."""


def all_layers(model: keras.Model) -> list[keras.layers.Layer]:
    """All layers of a model, those inside of others included."""
    return list(model._flatten_layers())


def layers_within(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """A layer and all those inside of it, outer ones first."""
    return list(layer._flatten_layers())


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


def replace_update(optimizer: keras.optimizers.Optimizer, update: Callable[..., None]) -> None:
    """Let an optimizer update, after clipping, by `update(gradients, variables, rate)`, which decays, too."""
    optimizer._backend_update_step = update
    optimizer._apply_weight_decay = lambda variables: None


def moments_of(optimizer: keras.optimizers.Optimizer, variable: keras.Variable) -> list[keras.Variable]:
    """The averages that SGD, Adam or LAMB keeps for a variable."""
    index = optimizer._get_variable_index(variable)
    if isinstance(optimizer, keras.optimizers.SGD):
        return [optimizer.momentums[index]]
    return [optimizer._momentums[index], optimizer._velocities[index]]


def forbid_downloads() -> None:
    """Refuse downloads through `keras.utils.get_file`, by which `keras.applications` gets its weights.

    A compute node often has no network, where a download would hang until the job's end; and many
    workers would fetch the same file at once.
    """

    def refuse(url: str, *_: Any, **__: Any) -> NoReturn:
        raise UserError(
            "the weights and other files of the task to be present before the run",
            f"a download of {url} in a worker",
            "Run `scalestudy data prepare STUDY` where there is a network, with the same KERAS_HOME.",
        )

    file_utils.urlretrieve = refuse


class CompiledParts(NamedTuple):
    """What `compile` has given a model, built.

    Attributes:
        loss: Keras's own sum of losses; None without one.
        parts: The losses of that sum.
        tracker: The mean of the loss over an epoch.
        loss_metrics: The same for each of several losses.
        metrics: Metrics and weighted metrics, as one; None without any.
    """

    loss: Any
    parts: list[Any]
    tracker: Any
    loss_metrics: list[Any]
    metrics: Any


def compiled_of(model: keras.Model) -> CompiledParts:
    """What a model was compiled with; it must be built by `build_from`."""
    loss = model._compile_loss
    parts = list(loss._flat_losses or []) if loss is not None else []
    metrics = model._compile_metrics
    return CompiledParts(loss, parts, model._loss_tracker, list(loss.metrics) if loss else [], metrics)


@contextmanager
def parts_replaced(compiled: CompiledParts, functions: Sequence[Any]) -> Iterator[None]:
    """Within, Keras's sum of losses calls these functions in place of its own."""
    before = compiled.loss._flat_losses
    compiled.loss._flat_losses = [
        part._replace(loss=function) for part, function in zip(before, functions, strict=True)
    ]
    try:
        yield
    finally:
        compiled.loss._flat_losses = before


def build_from(model: keras.Model, specs: Any) -> None:
    """Build a compiled model, its losses, metrics and optimizer, for batches of this structure of specs."""
    model._symbolic_build(data_batch=specs)


def asks_training(model: keras.Model) -> bool:
    """Whether a model is called with `training`."""
    return bool(model._call_has_training_arg)


def compile_words(model: keras.Model) -> dict[str, Any]:
    """What `compile` was called with; empty where Keras has not kept it."""
    config = model._compile_config
    return dict(config.config) if config is not None else {}


def first_epoch(model: keras.Model, epoch: int | None = None) -> int:
    """The epoch at which a callback (BackupAndRestore) has `fit` begin; set where one is given."""
    if epoch is not None:
        model._initial_epoch = epoch
    return int(model._initial_epoch or 0)


def mask_of(outputs: Any) -> Any:
    """Keras's mask of an output, or None."""
    return get_keras_mask(outputs)


def weighted(values: Any, weights: Any, mask: Any) -> tuple[Any, Any]:
    """Losses times their weights, and the weights: None where there are none. A mask is a weight of 0."""
    weights = apply_mask(weights, mask, dtype=values.dtype, reduction="sum")
    if weights is None:
        return values, None
    values, weights = squeeze_or_expand_to_same_rank(values, ops.cast(weights, values.dtype))
    return values * weights, weights


def epoch_iterator(**arguments: Any) -> Any:
    """Keras's own iterator over epochs, which counts steps and warns where data ends early."""
    return EpochIterator(**arguments)


def array_rows(adapter: Any) -> Any | None:
    """The arrays of a data adapter, which can be asked for rows, in their structure; None for a stream."""
    if not isinstance(adapter, ArrayDataAdapter):
        return None
    return array_slicing.convert_to_sliceable(adapter._inputs, target_backend="numpy")


def rows_in_order(adapter: Any) -> Any:
    """A `tf.data.Dataset` of row numbers, batch by batch, as Keras would take the rows of these arrays."""
    rows = np.arange(adapter._num_samples)
    return ArrayDataAdapter(rows, batch_size=adapter._batch_size, shuffle=adapter._shuffle).get_tf_dataset()


def batch_of(adapter: Any) -> tuple[int, int]:
    """Rows, and rows of a batch, of a data adapter of arrays."""
    return adapter._num_samples, adapter._batch_size


@contextmanager
def replaced(attributes: Mapping[Any, Mapping[str, Any]]) -> Iterator[None]:
    """Within, these layers, or parts of them, have these attributes; Keras does not take note of it."""
    before = {layer: dict(vars(layer)) for layer in attributes}
    try:
        for layer, values in attributes.items():
            vars(layer).update(values)
        yield
    finally:
        for layer, values in attributes.items():
            for name in values:
                vars(layer).pop(name, None)
            vars(layer).update({name: before[layer][name] for name in values if name in before[layer]})


def keep_wide_types() -> None:
    """Let Keras compute in 64 bits where it is given such, as on TensorFlow: elsewhere it takes 32."""
    dtypes.BIT64_TO_BIT32_DTYPE.update({"int64": "int64", "float64": "float64"})


def without_tensorflow() -> None:
    """Let Keras on another backend find no TensorFlow, which it would load to set its seed, for seconds."""
    module_utils.tensorflow._available = False


def draw_by(draws: Mapping[str, Callable[..., Any]]) -> None:
    """Let Keras on PyTorch draw its "uniform", "normal" and "truncated_normal" by these functions.

    Each is (seed of two numbers, count, dtype, device) -> standard ones, shape [count], float32 or float64.
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
            numbers = draw(draw_seed(seed).tolist(), math.prod(shape), kind, device).view(tuple(shape))
            return numbers * (second if spread else second - first) + first

        def by_bounds(shape: Any, minval: float = 0.0, maxval: float = 1.0, **more: Any) -> Any:
            # TensorFlow takes them for float32, whatever it draws.
            return drawn(shape, *(float(np.float32(bound)) for bound in (minval, maxval)), **more)

        def by_spread(shape: Any, mean: float = 0.0, stddev: float = 1.0, **more: Any) -> Any:
            return drawn(shape, mean, stddev, **more)

        return by_spread if spread else by_bounds

    for name, draw in draws.items():
        setattr(random, name, replaced(getattr(random, name), draw, spread=name != "uniform"))


def losses_by_logits() -> None:
    """Let Keras's cross-entropies on PyTorch go by the logits behind a softmax or sigmoid.

    So they do on TensorFlow; on PyTorch they clip the probabilities, whose gradient then vanishes.
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
    """Let Keras's convolutions and pooling on PyTorch take inputs of channels last as they lie.

    Keras copies each into channels first, and for convolutions back again. PyTorch computes in either layout,
    and says the same of a view of permuted axes: in memory that is its `channels_last`.
    """
    from keras.src.backend.torch import nn  # which imports PyTorch

    nn._transpose_spatial_inputs = lambda inputs: inputs.movedim(-1, 1)


def fuse_bias() -> None:
    """Let Keras's convolutions on PyTorch add their bias within, not in another pass over what they give."""
    from keras.src.backend.torch import nn  # which import PyTorch
    from keras.src.layers.convolutional.base_conv import BaseConv
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
            x, kernel, ops.convert_to_tensor(layer.bias),
            stride=layer.strides, padding=padding, dilation=layer.dilation_rate, groups=layer.groups,
        ).movedim(1, -1)  # fmt: skip
        return outputs if layer.activation is None else layer.activation(outputs)

    BaseConv.call = call


def seed_state(layer: keras.layers.Layer) -> Any:
    """The variable from which a layer draws; each draw adds 1 to its second number."""
    return layer.seed_generator.state


def seed_generators(layer: keras.layers.Layer) -> list[Any]:
    """What a layer itself draws by, those inside of it left out."""
    return list(layer._seed_generators)


def own_moments(layer: keras.layers.BatchNormalization) -> Callable[..., Any]:
    """How batch normalisation finds mean and variance: (inputs, mask) -> both of shape [C]."""
    return layer._moments


@contextmanager
def epochs_by(iterator: Callable[..., Any]) -> Iterator[None]:
    """Within, `fit` and `evaluate` go over what `iterator(**arguments)` gives instead of Keras's own."""
    from keras.src.backend.tensorflow import trainer as tensorflow_trainer  # which imports TensorFlow

    before = tensorflow_trainer.TFEpochIterator
    tensorflow_trainer.TFEpochIterator = iterator
    try:
        yield
    finally:
        tensorflow_trainer.TFEpochIterator = before


def offer(read: Callable[..., Any]) -> None:
    """Have graphs that run in this process call `read` where they say `tf.raw_ops.PyFunc(token=READ)`."""
    from tensorflow.python.ops import script_ops

    _offered[:] = [read]
    script_ops._py_funcs._funcs[READ] = read


def wait(value: Any, seconds: float) -> bool:
    """Whether a value that a worker computes is there within that time, or its error is."""
    there: bool = value._status_available_event.wait(seconds)
    return there


def length(value: Any) -> int:
    """Of the list that a worker computes, before it is there."""
    return len(value._type_spec)
