"""From an image of any size to what a model takes, and from what it says back to the image's size. Pure."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from scalestudy.data.images.resize import Way, covering, fitted, resize_image
from scalestudy.data.images.tiles import Tile, cut, stitch, tiles_of
from scalestudy.data.types import Size
from scalestudy.study.model_record import ModelRecord

Array = npt.NDArray[Any]


class Placing(Protocol):
    """How one image becomes inputs of a model."""

    @property
    def told(self) -> str:
        """What is done to the image, in a few words; "" for nothing."""

    def cut(self, image: Array) -> Array:
        """The inputs, shape [K, h, w, C], of an image of shape [H, W, C]."""

    def joined(self, values: Array) -> Array:
        """Values of the image's pixels, float32 [H, W, N], from those of the inputs, [K, h, w, N].

        They are NaN where the model saw nothing.
        """


@dataclass(frozen=True)
class Whole:
    """An image brought to the input's size as a whole, as prepared images are.

    Attributes:
        size: Height and width of the image.
        into: Those of the input.
        way: As `fit` under [data]: "pad", "crop" or "stretch".
    """

    size: Size
    into: Size
    way: Way = "pad"

    @property
    def told(self) -> str:
        """What is done."""
        if self.size == self.into:
            return ""
        done = {"pad": "fitted into", "crop": "cropped to", "stretch": "stretched to"}[self.way]
        return f"{done} {self.into[0]} x {self.into[1]}"

    def cut(self, image: Array) -> Array:
        """The one input."""
        whole: Array = resize_image(image, self.into, self.way)
        return whole[None]

    def joined(self, values: Array) -> Array:
        """The padding cut off, or what was cropped around it, and resized (bilinear) to the image."""
        one: Array = values.astype(np.float32, copy=False)[0]
        if self.size == self.into:
            return one
        if self.way == "stretch":
            return resized(one, self.size)
        inner = {"pad": fitted, "crop": covering}[self.way](self.size, self.into)
        (top, low), (left, right) = (
            _middle(*sides) for sides in zip(inner, self.into, strict=True)
        )  # of the smaller of both in the larger
        if self.way == "pad":
            return resized(one[top:low, left:right], self.size)
        whole = np.full((*inner, one.shape[2]), np.nan, np.float32)
        whole[top:low, left:right] = one
        return resized(whole, self.size)


@dataclass(frozen=True)
class Tiled:
    """An image at its own scale, in overlapping tiles of the input's size; zeros where a tile reaches beyond.

    Each pixel is taken from the tile in whose core it lies: see `data.tiles`.

    Attributes:
        size: Height and width of the image.
        into: Those of a tile.
        overlap: Pixels that neighbouring tiles share at least.
    """

    size: Size
    into: Size
    overlap: int

    @property
    def told(self) -> str:
        """What is done."""
        count = len(self._tiles)
        if count == 1:
            return f"padded to {self.into[0]} x {self.into[1]}"
        return f"cut into {count} tiles of {self.into[0]} x {self.into[1]}"

    @property
    def _tiles(self) -> list[Tile]:
        return tiles_of(self.size, self.into, self.overlap)

    def cut(self, image: Array) -> Array:
        """The tiles."""
        return np.stack([cut(image, tile, self.into) for tile in self._tiles])

    def joined(self, values: Array) -> Array:
        """Each pixel from its tile."""
        whole: Array = stitch(list(values.astype(np.float32, copy=False)), self._tiles, self.size)
        return whole


def placing(size: Size, record: ModelRecord) -> Placing:
    """How an image is brought to the size of a model's input: as the images that it was trained on.

    Images that were resized for training are resized. Masks of images that were not keep their scale: a
    larger image is cut into tiles, a smaller one padded.

    Args:
        size: Height and width of the image.
        record: What the model is of.
    """
    data = record.data
    tile, overlap = data.get("tile"), data.get("overlap")
    if record.kind == "masks" and size != record.size and (tile or not data.get("image_size")):
        shared = min(record.size) // (8 if tile else 4) if overlap is None else overlap
        return Tiled(size, record.size, shared)
    return Whole(size, record.size, data.get("fit", "pad"))


def resized(values: Array, size: Size) -> Array:
    """Float values [h, w, N], each channel resized by bilinear interpolation to [H, W, N]."""
    if values.shape[:2] == size:
        return values
    channels = [
        np.asarray(
            Image.fromarray(np.ascontiguousarray(values[:, :, channel], np.float32)).resize(
                (size[1], size[0]), Image.Resampling.BILINEAR
            )
        )
        for channel in range(values.shape[2])
    ]
    return np.stack(channels, axis=-1)


def _middle(one: int, other: int) -> tuple[int, int]:
    """Where the smaller of two lengths lies in the middle of the larger: start, and the first beyond."""
    start = abs(other - one) // 2
    return start, start + min(one, other)
