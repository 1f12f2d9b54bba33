"""What tells images that are the same, or nearly: a digest of their pixels, and a perceptual hash. Pure."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

Array = npt.NDArray[Any]

SIDE = 16
"""Pixels of a thumbnail's sides."""
DISTANCE = 6
"""Bits of two hashes that may differ in near-duplicates, out of 64."""
CORRELATION = 0.98
"""Of the thumbnails of near-duplicates at least: a hash alone takes many dark images for the same."""
SMALLEST = 32
"""Pixels of an image's longer side from which on it is compared: smaller ones, as digits, all look alike."""
_BLOCK = 64
"""Rows that are compared with all at once: what they take stays in the processor's cache."""


def digest(image: Array) -> bytes:
    """SHA-256 of an image's pixels, shape and type."""
    found = hashlib.sha256(repr((image.shape, image.dtype.str)).encode())
    found.update(np.ascontiguousarray(image).data)
    return found.digest()


def thumbnail(image: Array) -> Array:
    """The greys of an image [H, W, C], from its darkest to its lightest, as float32 [SIDE, SIDE]."""
    grey = image.mean(axis=2, dtype=np.float32)
    return _resized(grey, SIDE, SIDE)


def dhash(thumb: Array) -> int:
    """64 bits, each saying whether a cell of 8 x 9 is lighter than the next one to its right.

    N. Krawetz, "Kind of like that", 2013: the difference hash. It hardly changes with size, brightness,
    contrast and compression.
    """
    cells = _resized(thumb, 8, 9)
    bits = cells[:, :-1] < cells[:, 1:]
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


def same(digests: list[bytes]) -> list[list[int]]:
    """Rows of the same pixels, for each image that is there more than once."""
    found: dict[bytes, list[int]] = {}
    for row, each in enumerate(digests):
        found.setdefault(each, []).append(row)
    return [rows for rows in found.values() if len(rows) > 1]


def near(
    hashes: npt.NDArray[np.uint64],
    thumbs: Array,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[tuple[int, int]]:
    """Pairs of rows (smaller first) whose hashes are near, and whose thumbnails correlate.

    Args:
        hashes: Shape [N].
        thumbs: Shape [N, SIDE, SIDE].
        on_progress: Called with (rows compared, rows in all).
    """
    flat = thumbs.reshape(len(thumbs), -1).astype(np.float32)
    flat = flat - flat.mean(axis=1, keepdims=True)
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    flat = np.divide(flat, length, out=np.zeros_like(flat), where=length > 0)
    found: list[tuple[int, int]] = []
    for start in range(0, len(hashes), _BLOCK):
        rows = hashes[start : start + _BLOCK]
        differing = np.bitwise_count(rows[:, None] ^ hashes[None, start:])
        first, second = np.nonzero(differing <= DISTANCE)
        later = second > first
        first, second = first[later], second[later]
        alike = np.einsum("ij,ij->i", flat[first + start], flat[second + start]) >= CORRELATION
        pairs = zip((first + start)[alike].tolist(), (second + start)[alike].tolist(), strict=True)
        found += pairs
        if on_progress is not None:
            on_progress(min(start + _BLOCK, len(hashes)), len(hashes))
    return found


def _resized(grey: Array, height: int, width: int) -> Array:
    picture = Image.fromarray(np.ascontiguousarray(grey, np.float32))
    return np.asarray(picture.resize((width, height), Image.Resampling.BOX))
