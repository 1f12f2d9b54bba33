"""Finding, in a user's model, the layers whose meaning would depend on the workers."""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
from keras import layers

from scalestudy.engines.context import Working
from scalestudy.engines.keras.layers import in_order
from scalestudy.util.errors import UserError

SPATIAL = (layers.SpatialDropout1D, layers.SpatialDropout2D, layers.SpatialDropout3D)
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
    """Noise that is the same for the same global batch on any number of workers.

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
        drawn = [1] * (len(sample) - 1) + list(sample[-1:]) if self.spatial else list(sample)
        return Draw((self._key + again) % 2**64, -(-math.prod(drawn) // GROUP), drawn)


def adapt(model: keras.Model, make_ours: MakeOurs, *, seed: int, sync_batch_norm: bool) -> None:
    """Make an engine's own of a model's batch normalisation, dropout and Gaussian noise, where they are.

    Raises:
        UserError: If synchronised batch normalisation is asked for and a layer cannot have it.
    """
    numbers = itertools.count()
    for layer in in_order(model):
        if isinstance(layer, RowNoise) or getattr(layer, "keeps_statistics", False):
            continue  # it is in the model twice
        if adaptable(layer):
            make_ours(layer, seed, numbers)
        elif sync_batch_norm and isinstance(layer, layers.BatchNormalization):
            raise UserError(
                "batch normalisation over the last axis, without renormalisation, for sync_batch_norm",
                f"another in the layer {layer.name}",
                "Put channels last, or set sync_batch_norm = false.",
            )


def adaptable(layer: keras.layers.Layer) -> bool:
    """Whether a layer is one of Keras's whose meaning would depend on the workers, and can be ours."""
    if isinstance(layer, layers.BatchNormalization):
        return not layer.renorm and layer.axis in (-1, layer.input_spec.ndim - 1)
    if isinstance(layer, SPATIAL):
        return getattr(layer, "data_format", "channels_last") == "channels_last"
    if isinstance(layer, layers.GaussianNoise):
        return True
    return isinstance(layer, layers.Dropout) and layer.noise_shape is None
