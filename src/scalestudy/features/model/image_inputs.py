"""Find image files, convert each to inputs of a model, and convert outputs back to the image's size."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from scalestudy.data.images.decode import read_pixels
from scalestudy.data.images.form import (
    FULL,
    Form,
    Way,
    covering,
    fit_size,
    resize_image,
)
from scalestudy.data.images.tiles import Tile, cut, overlap_of, stitch, tiles_of
from scalestudy.data.samples import Size
from scalestudy.data.sources.files import READ_SUFFIXES, is_system_name
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.records import Record
from scalestudy.training.reading import in_channels
from scalestudy.util.errors import UserError

Array = npt.NDArray[Any]


class ImageItem(Record):
    """One image to predict."""

    shown: str
    """Its path for tables and messages."""
    name: str
    """Path of its results, relative to a folder and without suffix."""
    file: str
    """Its absolute path."""


def files_of(arguments: Sequence[str]) -> list[ImageItem]:
    """Return the image files among the arguments and in their folders, in order.

    Raises:
        UserError: If a path does not exist, a folder holds no images, or two results would have one name.
    """
    # Each image with its path below the argument.
    files: dict[str, tuple[Path, Path]] = {}
    for argument in arguments:
        path = Path(argument)
        if not path.exists():
            raise UserError(
                "images or folders of images",
                f"{path}, which does not exist",
                "Correct its name.",
            )
        inside = [(path, Path(path.name))]
        if path.is_dir():
            inside = _images_below(path)
        if not inside:
            raise UserError(
                "a folder with PNG, JPEG or TIFF images",
                f"{path}, without any",
                "Name another folder.",
            )
        # By its real path, so that an image is predicted once, however often it is named.
        for file, name in inside:
            files[os.path.realpath(file)] = file, name
    return _named(list(files.values()))


def _images_below(folder: Path) -> list[tuple[Path, Path]]:
    """Return the images in a folder, each with its path below that folder."""
    found = []
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        name = file.relative_to(folder)
        if name.suffix.lower() not in READ_SUFFIXES:
            continue
        # macOS leaves `._image.png` beside each image that it copies to another file system.
        if not any(map(is_system_name, name.parts)):
            found.append((file, name))
    return found


def _named(files: Sequence[tuple[Path, Path]]) -> list[ImageItem]:
    """Name results as the images without suffix, or with it if two images differ in nothing else."""
    short = [below.with_suffix("") for _, below in files]
    taken = Counter(short)
    names = []
    for (_, below), name in zip(files, short, strict=True):
        if taken[name] > 1:
            names.append(below)
        else:
            names.append(name)
    # Images of two folders may have one name with its suffix, too.
    for name, count in Counter(names).items():
        if count > 1:
            same = []
            for (file, _), other in zip(files, names, strict=True):
                if other == name:
                    same.append(str(file))
            raise UserError(
                "images with different names",
                f"{' and '.join(same[:3])}, which would all be written as {name}",
                "Predict one folder at a time, each with its own --out.",
            )
    items = []
    for (file, _), name in zip(files, names, strict=True):
        item = ImageItem(
            shown=str(file),
            name=name.as_posix(),
            file=str(file.absolute()),
        )
        items.append(item)
    return items


class Read(NamedTuple):
    """An image that was read."""

    pixels: Array
    """Pixels as in the file, shape [H, W, C]."""
    scale: float
    """Factor that converts pixels to the model's inputs."""


def read_for(path: Path, record: ModelRecord) -> Read:
    """Read an image file in the same way as the images that a model was trained on.

    Raises:
        UserError: If the file is damaged, or its values are not comparable with those in training.
    """
    channels = record.input_shape[2]
    value_range = record.data.get("value_range")
    pixels = read_pixels(path)
    present = pixels.shape[2]
    # Grey is repeated and colours become their luma; what a fourth or a fifth channel holds is unknown.
    if present != channels and {present, channels} != {1, 3}:
        raise UserError(
            f"images of {channels} channels, as in training",
            f"{path} with {present}",
            "Convert the image.",
        )
    pixels = in_channels(pixels[None], channels)[0]
    if record.dtype == "float32" and (value_range or pixels.dtype not in FULL):
        # Numbers of other types than 8 and 16 bits become float32, as when the set was prepared.
        bounds = None
        if value_range:
            bounds = tuple(value_range)
        form = Form(channels, np.dtype(np.float32), bounds)
        return Read(form.of(pixels, str(path)), record.scale)
    if pixels.dtype.name != record.dtype:
        raise UserError(
            f"numbers as in training ({record.dtype}, multiplied by {record.scale:.6g})",
            f"{path} of {pixels.dtype.name}",
            f"Store it as {record.dtype} with values of the same range.",
        )
    return Read(pixels, record.scale)


@dataclass(frozen=True)
class Whole:
    """Fits a whole image of `size` (height, width) into the size of the input, as when preparing images."""

    size: Size
    into: Size
    way: Way = "pad"
    """`fit` under [data]: "pad", "crop" or "stretch"."""

    def cut(self, image: Array) -> Array:
        """Return the inputs, shape [1, h, w, C], of an image of shape [H, W, C]."""
        whole: Array = resize_image(image, self.into, self.way)
        return whole[None]

    def joined(self, values: Array) -> Array:
        """Return values of the image's pixels, float32 [H, W, N], from those of the input, [1, h, w, N].

        Padding is cut off, and cropped pixels are NaN. Values are resized to the image (bilinear).
        """
        one: Array = values.astype(np.float32, copy=False)[0]
        if self.size == self.into:
            return one
        if self.way == "stretch":
            return resize(one, self.size)
        if self.way == "pad":
            inner = fit_size(self.size, self.into)
        else:
            inner = covering(self.size, self.into)
        top, low = _middle(inner[0], self.into[0])
        left, right = _middle(inner[1], self.into[1])
        if self.way == "pad":
            return resize(one[top:low, left:right], self.size)
        # NaN, which is the answer of no class: the model has not seen these pixels.
        whole = np.full((*inner, one.shape[2]), np.nan, np.float32)
        whole[top:low, left:right] = one
        return resize(whole, self.size)


@dataclass(frozen=True)
class Tiled:
    """Cuts an image at its own scale into tiles of the input's size that share at least `overlap` pixels.

    Pixels outside the image are zero. The value of a pixel is taken from the tile whose core contains it.
    """

    size: Size
    into: Size
    overlap: int

    @property
    def _tiles(self) -> list[Tile]:
        return tiles_of(self.size, self.into, self.overlap)

    def cut(self, image: Array) -> Array:
        """Return the tiles, shape [K, h, w, C], of an image of shape [H, W, C]."""
        return np.stack([cut(image, tile, self.into) for tile in self._tiles])

    def joined(self, values: Array) -> Array:
        """Return values of the image's pixels, float32 [H, W, N], from those of the tiles, [K, h, w, N]."""
        whole: Array = stitch(
            list(values.astype(np.float32, copy=False)),
            self._tiles,
            self.size,
        )
        return whole


Placing = Whole | Tiled
"""How an image becomes inputs of a model."""


def placing(size: Size, record: ModelRecord) -> Placing:
    """Return how to fit an image to the size of a model's input, as was done in training.

    If training images were resized, so is this image. For masks of training images that were not resized, the
    image keeps its scale: a larger image is cut into tiles, and a smaller one is padded.
    """
    data = record.data
    tile = data.get("tile")
    own_scale = tile or not data.get("image_size")
    if record.kind == "masks" and size != record.size and own_scale:
        # The model has little context at the edges of a tile, where another tile's core is taken.
        overlap = min(record.size) // 4
        if tile:
            # As the images of the training were cut.
            overlap = overlap_of(record.size)
        return Tiled(size, record.size, overlap)
    return Whole(size, record.size, data.get("fit", "pad"))


def resize(values: Array, size: Size) -> Array:
    """Resize float values [h, w, N] to [H, W, N], each channel by bilinear interpolation."""
    if values.shape[:2] == size:
        return values
    height, width = size
    channels = []
    # Pillow resizes floating-point numbers in images of one channel only.
    for channel in range(values.shape[2]):
        one = np.ascontiguousarray(values[:, :, channel], np.float32)
        resized = Image.fromarray(one).resize(
            (width, height),
            Image.Resampling.BILINEAR,
        )
        channels.append(np.asarray(resized))
    return np.stack(channels, axis=-1)


def _middle(one: int, other: int) -> tuple[int, int]:
    """Return start and end (exclusive) of the smaller of two lengths, centred in the larger."""
    start = abs(other - one) // 2
    return start, start + min(one, other)
