"""Masks drawn from polygons and run lengths, as COCO writes them (T.-Y. Lin et al., ECCV 2014).

A pixel belongs to a polygon if its centre does, by the even-odd rule.
"""

from typing import Any

import numpy as np

from scalestudy.data.source import Array, Size


def polygon(points: Array, size: Size) -> Array:
    """The pixels inside a polygon, bool [H, W].

    Args:
        points: [P, 2], x and y of its corners in pixels; (0, 0) is the outer corner of the first pixel.
        size: Height and width.
    """
    height, width = size
    x, y = points.T
    next_x, next_y = np.roll(x, -1), np.roll(y, -1)
    first, last = (int(np.clip(np.floor(edge), 0, height)) for edge in (y.min(), y.max() + 1))
    centres = np.arange(first, last)[:, None] + 0.5
    rows, edges = np.nonzero((y <= centres) != (next_y <= centres))
    part = (centres[rows, 0] - y[edges]) / (next_y - y)[edges]
    crossings = x[edges] + part * (next_x - x)[edges]
    # Every pixel to the right of a crossing changes sides.
    changes = np.zeros((height, width + 1), np.int64)
    np.add.at(changes, (rows + first, np.clip(np.ceil(crossings - 0.5), 0, width).astype(np.int64)), 1)
    inside: Array = np.cumsum(changes, axis=1)[:, :width] % 2 == 1
    return inside


def runs(counts: list[int], size: Size) -> Array:
    """The pixels of a run-length encoding, bool [H, W]: runs of 0 and 1 in turn, down the columns.

    Raises:
        ValueError: its runs are not as many pixels as the image has.
    """
    values = np.arange(len(counts)) % 2 == 1
    if min(counts, default=0) < 0 or sum(counts) != size[0] * size[1]:
        raise ValueError(f"runs over {sum(counts)} pixels of an image of {size[0]} x {size[1]}")
    return np.repeat(values, counts).reshape(size[1], size[0]).T


def uncompressed(text: str) -> list[int]:
    """Run lengths from COCO's compressed text: groups of 5 bits, each run but the first two as a difference.

    Raises:
        ValueError: it is no such text.
    """
    counts: list[int] = []
    value = shift = 0
    for letter in text:
        bits = ord(letter) - 48
        if not 0 <= bits < 64:
            raise ValueError(f"{letter!r} in run lengths")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
        value = shift = 0
    if shift:
        raise ValueError("run lengths that end in the middle")
    return counts


def shape(segmentation: Any, size: Size) -> Array:
    """The pixels of one annotation's `segmentation`: the union of its polygons, or its runs; bool [H, W].

    Raises:
        ValueError: it is neither.
    """
    if isinstance(segmentation, dict):
        counts, height_width = segmentation["counts"], tuple(segmentation["size"])
        if height_width != size:
            raise ValueError(f"runs of an image of {height_width} in one of {size}")
        return runs(uncompressed(counts) if isinstance(counts, str) else counts, size)
    joined = np.zeros(size, bool)
    for each in segmentation:
        points = np.asarray(each, float)
        if points.ndim != 1 or len(points) < 6 or len(points) % 2 or not np.isfinite(points).all():
            raise ValueError(f"a polygon of {np.size(points)} numbers: three corners are six")
        joined |= polygon(points.reshape(-1, 2), size)
    return joined
