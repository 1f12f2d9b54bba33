"""Adapting the layers of a user's model whose behaviour would depend on the number of workers."""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
from keras import layers

from scalestudy.engines.context import Working, current
from scalestudy.engines.keras.layers import in_order
from scalestudy.engines.keras.noise import drawn_shape, noise_of, seeds_by_step
from scalestudy.engines.keras.private import seed_generators
from scalestudy.util.errors import UserError

GROUP = 4
"""float32 values per counter of Philox."""
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
        self.seed, self.index = seed, index
        digest = hashlib.sha256(f"dropout {seed} {index}".encode()).digest()
        self._key = int.from_bytes(digest[:8], "little")

    def next_draw(self, sample: Sequence[Any], worker: Working) -> Draw:
        """Return the position for samples of this shape; each further call in a step has another key."""
        again = 0
        if worker.calls is not None:
            again = worker.calls[self.index]
            worker.calls[self.index] += 1
        drawn = drawn_shape(self, sample)
        return Draw((self._key + again) % 2**64, -(-math.prod(drawn) // GROUP), drawn)

    def drawn(self, inputs: Any, worker: Working, *, normal: bool) -> Any:
        """Draw numbers for `inputs`, normally distributed or uniform in [0, 1); float32."""
        raise NotImplementedError

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Apply the noise to `inputs` (shape [B, ...]) in training."""
        worker, noise = current(), noise_of(self)
        if not training or worker is None or noise is None:
            return inputs
        return noise.applied(inputs, self.drawn(inputs, worker, normal=noise.normal))


def draw_rows(layer: keras.layers.Layer, drawing: type[RowNoise], seed: int, index: int) -> None:
    """Make a Keras layer draw by rows with an engine's class `drawing`; see `RowNoise.draw_by`."""
    kind = type(layer)
    layer.__class__ = type(kind.__name__, (drawing, kind), {})
    layer.draw_by(seed, index)


def adapt(
    model: keras.Model, replace_layer: ReplaceLayer, *, seed: int, sync_batch_norm: bool, noise: bool = True
) -> list[str]:
    """Replace batch normalisation and (with `noise`) noise layers of a model in place by those of an engine.

    Other layers that draw random numbers get seeds from the step and the worker's slice.

    Returns:
        Names of those other layers, since their noise depends on the number of workers.

    Raises:
        UserError: If synchronised batch normalisation is requested and a layer does not support it.
    """
    numbers, others = itertools.count(), list[str]()
    for layer in in_order(model):
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
            apart = getattr(layer, "noise_shape", None) is None  # else all samples share the numbers
            generators = [generator for generator in seed_generators(layer) if "next" not in vars(generator)]
            for generator in generators:
                generator.next = seeds_by_step(generator, apart=apart)
            others += [layer.name] * bool(generators and apart)
    return others


def adaptable(layer: keras.layers.Layer) -> bool:
    """Return whether a layer depends on the number of workers and has a replacement."""
    if isinstance(layer, layers.BatchNormalization):
        return not layer.renorm and layer.axis in (-1, layer.input_spec.ndim - 1)
    return noise_of(layer) is not None
