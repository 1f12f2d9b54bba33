"""Finding, in a user's model, the layers whose meaning would depend on the workers."""

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
"""float32 values that one counter of Philox gives."""
MakeOurs = Callable[[keras.layers.Layer, int, Iterator[int]], None]
"""(layer, seed, numbers): makes a built layer the engine's own; one that draws takes the next number."""


class Draw(NamedTuple):
    """Where in its stream a layer draws for a slice.

    Attributes:
        key: 64 bits.
        groups: Counters of a sample, which a row of the global batch has for itself.
        sample: Shape of what is drawn for a sample.
    """

    key: int
    groups: Any
    sample: list[Any]


class RowNoise:
    """Noise that is the same for the same global batch on any number of workers; an engine draws it.

    It is a counter-based stream (Philox; Salmon et al., SC11): a worker starts at the counter of its slice's
    first sample and draws its own rows only.
    """

    def draw_by(self, seed: int, index: int, *, spatial: bool = False) -> None:
        """Draw by this seed of the run, as this layer of its model; `spatial` draws once for a channel."""
        self.seed, self.index, self.spatial = seed, index, spatial
        digest = hashlib.sha256(f"dropout {seed} {index}".encode()).digest()
        self._key = int.from_bytes(digest[:8], "little")

    def next_draw(self, sample: Sequence[Any], worker: Working) -> Draw:
        """Where it draws for samples of this shape; a layer that is called again in a step draws anew."""
        again = 0
        if worker.calls is not None:
            again = worker.calls[self.index]
            worker.calls[self.index] += 1
        drawn = self.shape_of_draw(sample)
        return Draw((self._key + again) % 2**64, -(-math.prod(drawn) // GROUP), drawn)

    def shape_of_draw(self, sample: Sequence[Any]) -> list[Any]:
        """The shape of what is drawn for a sample of this shape, channels last."""
        return [1] * (len(sample) - 1) + list(sample[-1:]) if self.spatial else list(sample)

    def drawn(self, inputs: Any, worker: Working, *, normal: bool) -> Any:
        """What an engine draws for `inputs`, normally or uniformly in [0, 1); float32."""
        raise NotImplementedError


class KerasRowNoise(RowNoise):
    """A layer of Keras's, by `RowNoise`."""

    def shape_of_draw(self, sample: Sequence[Any]) -> list[Any]:
        return drawn_shape(self, sample)

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Make noise of `inputs` (shape [B, ...]) in training."""
        worker, noise = current(), noise_of(self)
        if not training or worker is None or noise is None:
            return inputs
        return noise.applied(inputs, self.drawn(inputs, worker, normal=noise.normal))


def draw_rows(layer: keras.layers.Layer, drawing: type[RowNoise], seed: int, index: int) -> None:
    """Have a layer of Keras's draw by rows, by an engine's `drawing`; else as `RowNoise.draw_by`."""
    kind = type(layer)
    layer.__class__ = type(kind.__name__, (KerasRowNoise, drawing, kind), {})
    layer.draw_by(seed, index)


def adapt(model: keras.Model, make_ours: MakeOurs, *, seed: int, sync_batch_norm: bool) -> list[str]:
    """Make an engine's own of a model's batch normalisation and layers of noise, where they are.

    Other layers that draw do so by seeds of the step and of each worker.

    Returns:
        The names of such, whose noise depends on how many workers there are.

    Raises:
        UserError: If synchronised batch normalisation is asked for and a layer cannot have it.
    """
    numbers, others = itertools.count(), list[str]()
    for layer in in_order(model):
        if isinstance(layer, RowNoise) or getattr(layer, "keeps_statistics", False):
            continue  # it is in the model twice
        if adaptable(layer):
            make_ours(layer, seed, numbers)
        elif sync_batch_norm and isinstance(layer, layers.BatchNormalization):
            raise UserError(
                "batch normalisation over the last axis, without renormalisation, for sync_batch_norm",
                f"a different one in the layer {layer.name}",
                "Put channels last, or set sync_batch_norm = false.",
            )
        else:
            apart = getattr(layer, "noise_shape", None) is None  # else it draws alike for all samples
            generators = [generator for generator in seed_generators(layer) if "next" not in vars(generator)]
            for generator in generators:
                generator.next = seeds_by_step(generator, apart=apart)
            others += [layer.name] * bool(generators and apart)
    return others


def adaptable(layer: keras.layers.Layer) -> bool:
    """Whether a layer is one of Keras's whose meaning would depend on the workers, and can be ours."""
    if isinstance(layer, layers.BatchNormalization):
        return not layer.renorm and layer.axis in (-1, layer.input_spec.ndim - 1)
    return noise_of(layer) is not None
