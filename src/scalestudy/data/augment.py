"""Augmentation: parameters of each sample from random numbers, the geometry, and a reader that applies it.

The random numbers of a sample depend only on the seed, the epoch and the sample.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from scalestudy.config.operations import GEOMETRIC, Operation
from scalestudy.data.loader import Reader
from scalestudy.data.samples import Array, Columns, Forms, Indices, Size

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

LONGEST, WIDEST = 3 / 4, 4 / 3
"""Range of a crop's aspect ratio relative to the image's (Szegedy 2015, section 6)."""
MODE = "mirror"
"""SciPy's name for continuing an image by reflection about the center of its last pixel."""
_COUNTS = {
    "flip": 2,
    "rotate90": 1,
    "rotate": 1,
    "crop": 4,
    "brightness": 1,
    "contrast": 1,
    "noise": 1,
}
"""How many random numbers a sample takes, by the kind of operation."""
_STREAMS = {
    "flip": 0,
    "rotate90": 1,
    "rotate": 2,
    "crop": 5,
    "brightness": 6,
    "contrast": 7,
    "noise": 8,
}
_ALL_STREAMS = 12
"""The random numbers depend on the streams and their number; those of removed operations stay unused."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def uniforms(
    seed: int,
    epoch: int,
    rows: Indices,
    count: int,
) -> npt.NDArray[np.float64]:
    """Return `count` uniform numbers in (0, 1) for each row, shape [b, count], independent of the batch.

    Counters are hashed by the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
    number generators", 2014): seed, epoch and row twice, then the index of each number once.
    """
    # The arithmetic of the generator is modulo 2**64: an overflow is meant.
    with np.errstate(over="ignore"):
        seeds = np.array([seed], np.uint64)
        of_seed = _mix(seeds * _GOLDEN + np.uint64(1))
        of_epoch = _mix(of_seed + np.uint64(epoch))
        of_row = _mix(of_epoch + rows.astype(np.uint64))
        streams = _mix(of_row)
        numbers = np.arange(1, count + 1, dtype=np.uint64)
        counters = numbers * _GOLDEN
        words = _mix(streams[:, None] + counters[None])
    # The 53 bits of a double; the half keeps 0 and 1 out.
    bits = words >> np.uint64(11)
    return (bits.astype(np.float64) + 0.5) * 2.0**-53


def _mix(words: Words) -> Words:
    # Shifts and factors are those of SplitMix64's finalizer.
    words = _xor_shifted(words, 30) * _FIRST
    words = _xor_shifted(words, 27) * _SECOND
    return _xor_shifted(words, 31)


def _xor_shifted(words: Words, bits: int) -> Words:
    shifted: Words = words ^ (words >> np.uint64(bits))
    return shifted


@dataclass(frozen=True)
class Parameters:
    """Augmentation of b samples; None for operations that are not applied.

    Attributes:
        matrix: Affine matrices [b, 2, 3]. The source of the pixel at (y, x) is matrix · (y, x, 1); both are
            relative to the center of the image.
        contrast: Factors about the mean of each image, shape [b].
        brightness: Values to add, as shares of the full range, shape [b].
        sigma: Standard deviation of the noise, as a share of the full range.
        noise: Seeds of the noise, shape [b].
    """

    matrix: Floats | None = None
    contrast: Floats | None = None
    brightness: Floats | None = None
    sigma: float = 0.0
    noise: npt.NDArray[np.int64] | None = None


def draw(
    operations: Sequence[Operation],
    seed: int,
    epoch: int,
    rows: Indices,
) -> dict[str, Floats]:
    """Return the uniform numbers of each operation by its kind, shape [b, numbers per sample].

    Each kind has its own stream, so that adding an operation does not change the numbers of the others.
    """
    numbers = {}
    for operation in operations:
        kind = operation.kind
        stream = seed * _ALL_STREAMS + _STREAMS[kind]
        numbers[kind] = uniforms(stream, epoch, rows, _COUNTS[kind])
    return numbers


def parameters(
    operations: Sequence[Operation],
    drawn: dict[str, Floats],
    size: Size,
) -> Parameters:
    """Compute the parameters from the drawn numbers for images of `size`."""
    matrix: Floats | None = None
    found = Parameters()
    for operation in operations:
        numbers = drawn[operation.kind]
        first = numbers[:, 0]
        match operation.kind:
            case "contrast":
                change = operation["amount"] * _either_sign(first)
                found = replace(found, contrast=1 + change)
            case "brightness":
                added = operation["amount"] * _either_sign(first)
                found = replace(found, brightness=added)
            case "noise":
                seeds = first * 2**31
                found = replace(
                    found,
                    sigma=float(operation["sigma"]),
                    noise=seeds.astype(np.int64),
                )
            case kind:
                if matrix is None:
                    matrix = np.tile(np.eye(3), (len(numbers), 1, 1))
                # From the right: a matrix maps to the source, so the last operation is applied first.
                matrix = matrix @ _matrices(kind)(operation, numbers, size)
    if matrix is not None:
        found = replace(found, matrix=matrix[:, :2])
    return found


def _either_sign(numbers: Floats) -> Floats:
    """Map uniform numbers from (0, 1) to (-1, 1)."""
    return 2 * numbers - 1


def _matrices(kind: str) -> Callable[[Operation, Floats, Size], Floats]:
    made = {"flip": _flip, "rotate90": _rotate90, "rotate": _rotate, "crop": _crop}
    return made[kind]


def _flip(operation: Operation, drawn: Floats, size: Size) -> Floats:
    signs = np.where(drawn < 0.5, -1.0, 1.0)
    down = signs[:, 0]
    across = signs[:, 1]
    if operation["way"] == "horizontal":
        down[:] = 1
    if operation["way"] == "vertical":
        across[:] = 1
    return _linear(down, 0, 0, across)


def _rotate90(operation: Operation, drawn: Floats, size: Size) -> Floats:
    quarters = np.floor(drawn[:, 0] * 4).astype(int)
    height, width = size
    # Only half turns: a quarter turn would change the shape.
    if height != width:
        quarters &= 2
    # Exact values: `np.cos` of a right angle is not 0, and the pixels would be interpolated.
    cosines = np.array([1.0, 0.0, -1.0, 0.0])[quarters]
    sines = np.array([0.0, 1.0, 0.0, -1.0])[quarters]
    return _linear(cosines, -sines, sines, cosines)


def _rotate(operation: Operation, drawn: Floats, size: Size) -> Floats:
    most = np.deg2rad(operation["degrees"])
    angles = most * _either_sign(drawn[:, 0])
    cosines = np.cos(angles)
    sines = np.sin(angles)
    return _linear(cosines, -sines, sines, cosines)


def _crop(operation: Operation, drawn: Floats, size: Size) -> Floats:
    """Crop a random part, at least the share `least` of the area, and enlarge it to the image's size."""
    least = operation["least"]
    area = least + (1 - least) * drawn[:, 0]
    # Uniform in the logarithm, so that a ratio and its inverse are equally likely.
    low = np.log(LONGEST)
    high = np.log(WIDEST)
    logarithm = low + (high - low) * drawn[:, 1]
    proportion = np.exp(logarithm)
    proportion = np.clip(proportion, area, 1 / area)  # no side longer than the image
    height = np.sqrt(area / proportion)
    width = np.sqrt(area * proportion)
    room = 1 - np.stack([height, width], axis=1)
    from_middle = drawn[:, 2:] - 0.5
    offsets = room * from_middle * size
    return _linear(height, 0, 0, width, offsets)


def _linear(
    a: Any,
    b: Any,
    c: Any,
    d: Any,
    offset: Any = 0,
) -> Floats:
    """Return matrices [[a, b], [c, d]] with an offset, shape [b, 3, 3]."""
    matrix = np.zeros((len(a), 3, 3))
    matrix[:, 0, 0] = a
    matrix[:, 0, 1] = b
    matrix[:, 1, 0] = c
    matrix[:, 1, 1] = d
    matrix[:, :2, 2] = offset
    # Homogeneous coordinates: products of such matrices add the offsets too.
    matrix[:, 2, 2] = 1
    return matrix


def coordinates(matrix: Floats, size: Size) -> Floats:
    """Return the source rows and columns of the pixels of an image of `size`, shape [2, H, W].

    `matrix` is an affine matrix [2, 3] about the center; see `Parameters`.
    """
    height, width = size
    middle_row = (height - 1) / 2
    middle_column = (width - 1) / 2
    down = np.arange(height) - middle_row
    across = np.arange(width) - middle_column
    centre = np.array([middle_row, middle_column])
    origin = matrix[:, 2] + centre
    # Add the contributions of row and column: cheaper than a matrix product for each pixel.
    by_row = matrix[:, 0, None] * down + origin[:, None]
    by_column = matrix[:, 1, None] * across
    moved: Floats = by_row[:, :, None] + by_column[:, None, :]
    return moved


def whole(matrix: Floats, size: Size) -> bool:
    """Whether the matrix maps pixels to pixels: only right angles and reflections."""
    turn = matrix[:, :2]
    offset = matrix[:, 2]
    right_angle = np.isin(turn, (-1.0, 0.0, 1.0)).all()
    if offset.any() or not right_angle:
        return False
    keeps_axes = np.array_equal(np.abs(turn), np.eye(2))
    height, width = size
    return keeps_axes or height == width


def rotate(pixels: Array, matrix: Floats) -> Array:
    """Rotate and flip pixels [H, W, ...] by a matrix that is `whole`, without interpolation."""
    of_row = matrix[:, 0]
    of_column = matrix[:, 1]
    down = of_row[0]
    across = of_column[1]
    # Rows become columns.
    if down == 0:
        pixels = pixels.swapaxes(0, 1)
        down = of_row[1]
        across = of_column[0]
    # Each is 1, or -1 for the other way round.
    return pixels[:: int(down), :: int(across)]


def sampled(image: Array, at: Floats) -> npt.NDArray[np.float32]:
    """Sample an image [H, W, C] bilinearly at rows and columns [2, H, W]; returns [H, W, C]."""
    out = np.empty(image.shape, np.float32)
    # Channel by channel: SciPy would interpolate between channels too.
    for channel in range(image.shape[2]):
        values = image[:, :, channel]
        ndimage.map_coordinates(
            values,
            at,
            out[:, :, channel],
            order=1,
            mode=MODE,
            prefilter=False,
        )
    return out


def nearest(mask: Array, at: Floats) -> Array:
    """Sample a mask [H, W] at the nearest pixels; halfway between two, at the one with even index."""
    height, width = mask.shape
    rows, columns = np.rint(at).astype(np.int64)
    rows = reflect(rows, height)
    columns = reflect(columns, width)
    places = rows * width + columns
    taken: Array = mask.reshape(-1).take(places)
    return taken


def reflect(index: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.int64]:
    """Reflect indices into 0..length-1 about the centers of the first and the last pixel."""
    if length == 1:
        return np.zeros_like(index)
    period = 2 * (length - 1)
    index = np.abs(index)
    if index.max(initial=0) >= period:
        index %= period
    from_end = period - index
    reflected: npt.NDArray[np.int64] = np.minimum(index, from_end)
    return reflected


def apply(
    image: Array,
    masks: Sequence[Array],
    index: int,
    what: Parameters,
    scale: float,
) -> None:
    """Augment a sample in place: geometry, then contrast, brightness and noise; values are rounded once.

    Args:
        image: Shape [H, W, C], as stored.
        masks: Masks [H, W] that get the same geometry.
        index: Index of the sample in the batch.
        what: Parameters of the batch.
        scale: Factor that scales stored values to [0, 1]. Integer images are clipped to that range, float
            images are not.
    """
    height, width = image.shape[:2]
    size = (height, width)
    matrix = None
    if what.matrix is not None:
        matrix = what.matrix[index]
    lights = (what.contrast, what.brightness, what.noise)
    pixels: npt.NDArray[np.float32] | None = None
    if matrix is not None and whole(matrix, size):
        # Copied first, since the view and its target share their memory.
        image[:] = rotate(image, matrix).copy()
        for mask in masks:
            mask[:] = rotate(mask, matrix).copy()
    elif matrix is not None:
        at = coordinates(matrix, size)
        pixels = sampled(image, at)
        for mask in masks:
            mask[:] = nearest(mask, at)
    if any(light is not None for light in lights):
        if pixels is None:
            pixels = image.astype(np.float32)
        pixels = _lit(pixels, index, what, scale)
    if pixels is not None:
        store(pixels, image, scale)


def store(pixels: npt.NDArray[np.float32], image: Array, scale: float) -> None:
    """Copy pixels into `image`; for integer types round them and clip them to the full range."""
    if image.dtype.kind in "ui":
        full = round(1 / scale)
        np.rint(pixels, out=pixels)
        np.clip(pixels, 0, full, out=pixels)
    image[:] = pixels


def _lit(
    pixels: npt.NDArray[np.float32],
    index: int,
    what: Parameters,
    scale: float,
) -> npt.NDArray[np.float32]:
    full = np.float32(1 / scale)
    if what.contrast is not None:
        # In double precision: sums of large images lose digits in single.
        mean = np.mean(pixels, dtype=np.float64).astype(np.float32)
        factor = np.float32(what.contrast[index])
        pixels = (pixels - mean) * factor + mean
    if what.brightness is not None:
        added = np.float32(what.brightness[index])
        pixels = pixels + added * full
    if what.noise is not None:
        # A generator of its own for each sample: the noise of one does not depend on the others.
        seed = int(what.noise[index])
        generator = np.random.Generator(np.random.Philox(seed))
        noise = generator.standard_normal(pixels.shape, np.float32)
        sigma = np.float32(what.sigma)
        pixels = pixels + noise * sigma * full
    return pixels


class Augmented:
    """Reads rows from another reader and augments them, determined by the seed, the epoch and the row.

    Args:
        reader: Reader of images [H, W, C], and masks [H, W] or classes.
        scale: Factor that scales stored images to [0, 1].
    """

    def __init__(
        self,
        reader: Reader,
        operations: Sequence[Operation],
        *,
        seed: int,
        scale: float,
    ) -> None:
        self._reader = reader
        self._seed = seed
        self._scale = scale
        self._operations = tuple(operations)
        self._moves = any(operation.kind in GEOMETRIC for operation in operations)

    def forms(self, rows: Indices) -> tuple[Forms, Forms]:
        return self._reader.forms(rows)

    def read(
        self,
        rows: Indices,
        epoch: int | None,
        inputs: Columns,
        targets: Columns,
    ) -> None:
        assert isinstance(inputs, np.ndarray)
        assert isinstance(targets, np.ndarray)
        self._reader.read(rows, epoch, inputs, targets)
        if epoch is None:
            return
        size = (inputs.shape[1], inputs.shape[2])
        drawn = draw(self._operations, self._seed, epoch, rows)
        what = parameters(self._operations, drawn, size)
        with_masks = self._moves and targets.shape[1:] == size

        def change(index: int) -> None:
            masks = [targets[index]] if with_masks else []
            apply(inputs[index], masks, index, what, self._scale)

        # `list` waits for all samples, and raises what a thread raised.
        list(self._threads.map(change, range(len(rows))))

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(len(os.sched_getaffinity(0)), "augment")
