"""Layers of a user's model whose behaviour would depend on the number of workers, under any engine."""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
from keras import layers, ops

from scalestudy.engines.keras.layer_context import Working, current
from scalestudy.engines.keras.private import layers_in_order, seed_generators
from scalestudy.util.errors import UserError

SPATIAL = (layers.SpatialDropout1D, layers.SpatialDropout2D, layers.SpatialDropout3D)
SATURATED = -1.7580993408473766
"""Value of SELU for large negative inputs (Klambauer et al. 2017, arXiv:1706.02515)."""

SLICES, DRAWS = 1_000_003, 7_919
"""Distance between the seeds of rows, by which workers differ, and between the seeds of draws."""
GROUP = 4
"""float32 values per counter of Philox."""


class Noise(NamedTuple):
    """The noise of a layer.

    Attributes:
        normal: Whether the numbers are standard normal; otherwise they are uniform in [0, 1).
        applied: (inputs, shape [B, ...], numbers) -> outputs.
    """

    normal: bool
    applied: Callable[[Any, Any], Any]


def noise_of(layer: keras.layers.Layer) -> Noise | None:
    """Return the noise of a layer that draws numbers for each sample; None for others, or without effect."""
    if not getattr(layer, "rate", 0) and not getattr(layer, "stddev", 0):
        return None
    shape = getattr(layer, "noise_shape", None)
    if shape is not None and shape[0] is not None:  # all samples share the numbers
        return None
    for kind, noise in (
        (layers.Dropout, _dropout),
        (layers.AlphaDropout, _alpha_dropout),
        (layers.GaussianDropout, _gaussian_dropout),
        (layers.GaussianNoise, _gaussian_noise),
    ):
        if isinstance(layer, kind):
            return noise(layer)
    return None


def drawn_shape(layer: keras.layers.Layer, sample: Sequence[Any]) -> list[Any]:
    """Return the shape of the numbers that a layer draws for a sample of this shape."""
    if isinstance(layer, SPATIAL):  # one number per channel
        ones = [1] * (len(sample) - 1)
        if getattr(layer, "data_format", "channels_last") == "channels_last":
            return [*ones, sample[-1]]
        return [sample[0], *ones]
    shape = getattr(layer, "noise_shape", None)
    if shape is None:
        return list(sample)
    drawn = []
    for fixed, length in zip(shape[1:], sample, strict=True):
        if fixed is None:
            drawn.append(length)
        else:
            drawn.append(fixed)
    return drawn


def seeds_by_step(generator: Any, *, apart: bool) -> Callable[..., Any]:
    """Return a replacement for `next` of a seed generator; seeds depend on the step and the worker's slice.

    With `apart`, no two workers draw the same numbers, so the noise depends on the division of the batch.
    Otherwise all workers draw the same numbers, as a single worker would.
    """
    plain = generator.next
    on_host = keras.backend.backend() == "torch"
    own = 0
    if on_host:
        # Read once: reading it in a step would wait for a GPU.
        own = int(ops.convert_to_numpy(generator.state.value)[0])

    def next_seed(ordered: bool = True) -> Any:
        worker = current()
        if worker is None:
            return plain(ordered)
        # A layer that is called twice in a step draws other numbers the second time.
        again = 0
        if worker.calls is not None:
            again = worker.calls[id(generator)]
            worker.calls[id(generator)] += 1
        part = worker.slice
        if on_host:  # PyTorch's generators take numbers of the host; for one of a GPU they would wait
            place = 0
            if apart:
                place = part.start
            return hash((own, place, again, part.step)) % 2**32, 0
        seed = generator.state.value[0]
        step = ops.cast(ops.convert_to_tensor(part.step), seed.dtype)
        distance: Any = 0
        if apart:
            start = ops.cast(ops.convert_to_tensor(part.start), seed.dtype)
            distance = start * SLICES
        return ops.stack([seed + distance + again * DRAWS, step])

    return next_seed


def _dropout(layer: layers.Dropout) -> Noise:
    def applied(inputs: Any, drawn: Any) -> Any:
        kept = ops.cast(drawn >= layer.rate, inputs.dtype)
        return inputs * (kept * (1 / (1 - layer.rate)))

    return Noise(False, applied)


def _alpha_dropout(layer: layers.AlphaDropout) -> Noise:
    rate = layer.rate
    # Scale and offset keep the mean and the variance of the inputs (Klambauer et al. 2017).
    scale = ((1 - rate) * (1 + rate * SATURATED**2)) ** -0.5

    def applied(inputs: Any, drawn: Any) -> Any:
        kept = ops.cast(drawn >= rate, inputs.dtype)
        mixed = inputs * kept + SATURATED * (1 - kept)
        return scale * mixed - scale * SATURATED * rate

    return Noise(False, applied)


def _gaussian_dropout(layer: layers.GaussianDropout) -> Noise:
    deviation = math.sqrt(layer.rate / (1 - layer.rate))

    def applied(inputs: Any, drawn: Any) -> Any:
        return inputs * ops.cast(1 + drawn * deviation, inputs.dtype)

    return Noise(True, applied)


def _gaussian_noise(layer: layers.GaussianNoise) -> Noise:
    def applied(inputs: Any, drawn: Any) -> Any:
        return inputs + ops.cast(drawn * layer.stddev, inputs.dtype)

    return Noise(True, applied)


ReplaceLayer = Callable[[keras.layers.Layer, int, Iterator[int]], None]
"""(layer, seed, numbers): replaces a built layer by the engine's; a layer of noise takes the next number."""


class Draw(NamedTuple):
    """The position in the random stream at which a layer draws.

    Attributes:
        key: 64-bit key.
        groups: Counters used for each row of the global batch.
        sample: Shape of the numbers drawn for a sample.
    """

    key: int
    groups: Any
    sample: list[Any]


class RowNoise:
    """A layer with the same noise for a global batch on any number of workers. Engines implement `drawn`.

    Numbers come from a counter-based stream (Philox; Salmon et al., SC11). A worker starts at the counter of
    the first sample of its slice and draws only its own rows.
    """

    def draw_by(self, seed: int, index: int) -> None:
        """Set the run's seed and the layer's index."""
        self.seed = seed
        self.index = index
        digest = hashlib.sha256(f"dropout {seed} {index}".encode()).digest()
        self._key = int.from_bytes(digest[:8], "little")

    def next_draw(self, sample: Sequence[Any], worker: Working) -> Draw:
        """Return the position for samples of this shape; each further call in a step has another key."""
        again = 0
        if worker.calls is not None:
            again = worker.calls[self.index]
            worker.calls[self.index] += 1
        drawn = drawn_shape(self, sample)
        # Rows begin at whole counters, so that a worker can start at the first of its own.
        groups = -(-math.prod(drawn) // GROUP)
        return Draw((self._key + again) % 2**64, groups, drawn)

    def drawn(
        self,
        inputs: Any,
        worker: Working,
        *,
        normal: bool,
    ) -> Any:
        """Draw numbers for `inputs`, normally distributed or uniform in [0, 1); float32."""
        raise NotImplementedError

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Apply the noise to `inputs` (shape [B, ...]) in training."""
        worker = current()
        noise = noise_of(self)
        if not training or worker is None or noise is None:
            return inputs
        return noise.applied(inputs, self.drawn(inputs, worker, normal=noise.normal))


def draw_rows(
    layer: keras.layers.Layer,
    drawing: type[RowNoise],
    seed: int,
    index: int,
) -> None:
    """Make a Keras layer draw by rows with an engine's class `drawing`; see `RowNoise.draw_by`."""
    kind = type(layer)
    # A subclass by the same name: `isinstance` and saved configurations still hold.
    layer.__class__ = type(kind.__name__, (drawing, kind), {})
    layer.draw_by(seed, index)


def adapt(
    model: keras.Model,
    replace_layer: ReplaceLayer,
    *,
    seed: int,
    sync_batch_norm: bool,
    noise: bool = True,
) -> list[str]:
    """Replace batch normalisation and (with `noise`) noise layers of a model in place by those of an engine.

    Other layers that draw random numbers get seeds from the step and the worker's slice.

    Returns:
        Names of those other layers, since their noise depends on the number of workers.

    Raises:
        UserError: If synchronised batch normalisation is requested and a layer does not support it.
    """
    numbers = itertools.count()
    others: list[str] = []
    for layer in layers_in_order(model):
        if isinstance(layer, RowNoise) or getattr(layer, "keeps_statistics", False):
            continue  # already replaced: the layer occurs twice in the model
        if adaptable(layer) and (noise or isinstance(layer, layers.BatchNormalization)):
            replace_layer(layer, seed, numbers)
        elif sync_batch_norm and isinstance(layer, layers.BatchNormalization):
            raise UserError(
                "batch normalisation over the last axis, without renormalisation, for sync_batch_norm",
                f"a different one in the layer {layer.name}",
                "Put channels last, or set sync_batch_norm = false.",
            )
        else:
            # With a noise shape, all samples share the numbers, and so must all workers.
            apart = getattr(layer, "noise_shape", None) is None
            if _seed_by_step(layer, apart=apart) and apart:
                others.append(layer.name)
    return others


def _seed_by_step(layer: keras.layers.Layer, *, apart: bool) -> bool:
    """Replace the seeds of a layer; see `seeds_by_step`. Return whether it had any left to replace."""
    replaced = False
    for generator in seed_generators(layer):
        if "next" not in vars(generator):  # layers may share one
            generator.next = seeds_by_step(generator, apart=apart)
            replaced = True
    return replaced


def adaptable(layer: keras.layers.Layer) -> bool:
    """Return whether a layer depends on the number of workers and has a replacement."""
    if isinstance(layer, layers.BatchNormalization):
        return not layer.renorm and layer.axis in (-1, layer.input_spec.ndim - 1)
    return noise_of(layer) is not None
