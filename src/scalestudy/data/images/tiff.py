"""TIFF files that Pillow cannot read without loss: floats, 32 bits, 16-bit colour, many channels, stacks."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from scalestudy.data.samples import Array, Size
from scalestudy.util.errors import UserError

Stack = Literal["samples", "channels", "first"]

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""First bytes of a TIFF; the last two are BigTIFF."""
LARGEST_IN_MEMORY = 2**28
"""Bytes of pixels above which a file is decoded to a temporary file on disk."""
_BITS, _COMPRESSION, _ORIENTATION, _SAMPLES, _EXTRA, _FORMAT = 258, 259, 274, 277, 338, 339
_PLAIN_COMPRESSIONS = (1, 2, 3, 4, 5, 6, 7, 8, 32773, 32946)
"""Compressions that every build of Pillow supports: none, fax, LZW, JPEG, deflate, PackBits."""
_ALPHA = (1, 2)
NO_CHANNELS = {3: "a stack of palette images", 5: "CMYK colour", 8: "CIELAB colour"}
"""Photometric interpretations whose channels are not brightness or RGB."""
_CHANNELS = dict.fromkeys(("1", "L", "P", "I;16", "I;16B", "LA"), 1) | {
    "RGB": 3,
    "RGBA": 3,
    "CMYK": 4,
    "YCbCr": 3,
}


@dataclass(frozen=True)
class Header:
    """Properties of an image that are known before its pixels are decoded.

    Attributes:
        size: Height and width, upright.
        dtype: Stored type of the pixels.
        channels: Channels without alpha.
        format: Pillow's name of the format.
        doubtful: Whether the EXIF orientation turns or mirrors the image without changing its size.
        pages: Number of images in the file that are samples.
        left: Number of further images in the file, which are skipped.
    """

    path: Path
    size: Size
    dtype: np.dtype[Any]
    channels: int
    format: str = "TIFF"
    doubtful: bool = False
    pages: int = 1
    left: int = 0


def is_tiff(path: Path) -> bool:
    """Whether a file is a TIFF by its first bytes."""
    with path.open("rb") as stream:
        return stream.read(4) in MAGIC


def is_plain(picture: Image.Image) -> bool:
    """Whether Pillow reads this TIFF without loss: one page of up to 8 bits, or 16-bit grey."""
    tags = picture.tag_v2  # type: ignore[attr-defined]
    if picture.mode not in _CHANNELS or _is_stack(picture):
        return False
    bits, formats = (_all(tags.get(tag, default)) for tag, default in ((_BITS, 1), (_FORMAT, 1)))
    extra = [kind for kind in _all(tags.get(_EXTRA, ())) if kind in _ALPHA]
    samples = tags.get(_SAMPLES, 1) - len(extra)
    if tags.get(_COMPRESSION, 1) not in _PLAIN_COMPRESSIONS:
        return False
    deep = max(bits) > 8 and not picture.mode.startswith("I;16")
    # Unsigned integers, and as many channels as Pillow's mode has.
    return not deep and set(formats) == {1} and samples == _CHANNELS[picture.mode]


def read_pages(path: Path, stack: Stack | None) -> Header:
    """Read the contents of a file without decoding; `stack` is the meaning of several pages.

    Raises:
        UserError: If the file has several pages and `stack` is None, complex numbers, or a colour model
            whose channels are not brightness or RGB.
    """
    with _series(path, stack) as (series, others):
        return _pages(path, series, others, stack)[0]


def read_stack(path: Path, stack: Stack | None) -> tuple[Header, Array]:
    """Decode all images, upright, shape [count, H, W, channels (and alpha)]; large files are memory-mapped.

    Raises:
        UserError: As in `read_pages`.
    """
    with _series(path, stack) as (series, others):
        header, order, shape, orientation = _pages(path, series, others, stack)
        array: Array = series.asarray(out="memmap" if series.nbytes > LARGEST_IN_MEMORY else None)
        white_is_zero = series.keyframe.photometric == 0 and array.dtype.kind in "bu"
        array = array.transpose(order).reshape(shape)[: header.pages]
        if array.dtype == np.bool_:
            array = array.astype(np.uint8) * 255
        return header, upright(np.invert(array) if white_is_zero else array, orientation)


def rotate(stored: Size, orientation: int) -> tuple[Size, bool]:
    """Return the upright size, and whether the image is turned or mirrored without a change of size."""
    upright = stored[::-1] if orientation >= 5 else stored
    return upright, orientation != 1 and upright == stored


def upright(images: Array, orientation: int) -> Array:
    """Apply an EXIF orientation to images [N, H, W, C]."""
    if orientation >= 5:
        images = images.swapaxes(1, 2)
    if orientation in (3, 4, 7, 8):
        images = images[:, ::-1]
    return images[:, :, ::-1] if orientation in (2, 3, 6, 7) else images


@contextmanager
def _series(path: Path, stack: Stack | None) -> Iterator[tuple[Any, int]]:
    """Yield the first series of equal pages, and the number of other pages that are not smaller.

    Smaller pages are thumbnails or levels of a pyramid.
    """
    import tifffile

    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # important warnings are raised as errors below
    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        for page in series.pages:  # tifffile reads segments beyond the end of the file as zeros
            if page is None:
                raise ValueError("a page is missing")
            for start, length in zip(page.dataoffsets, page.databytecounts, strict=True):
                if start + length > file.filehandle.size:
                    raise ValueError("truncated: its pixels end beyond the file")
        size = dict(zip(series.axes, series.shape, strict=True))
        others = 0
        for level in file.series[1:]:
            of_level = dict(zip(level.axes, level.shape, strict=True))
            if all(of_level.get(axis, 0) >= size.get(axis, 0) for axis in "YX"):
                others += len(level.pages)
        if others and stack != "first":
            raise UserError(
                "pages of one size and type in a file",
                f"{path}, with {others} different pages",
                'Write stack = "first" under [data] to use the first page, or save each to its own file.',
            )
        yield series, others


def _pages(
    path: Path, series: Any, others: int, stack: Stack | None
) -> tuple[Header, list[int], tuple[int, ...], int]:
    """Return the header, the axis order (pages, height, width, channels), its shape, and the orientation."""
    axes, lengths, page = series.axes, dict(zip(series.axes, series.shape, strict=True)), series.keyframe
    if "Y" not in lengths or "X" not in lengths:
        raise ValueError(f"its axes are {axes}, without height and width")
    inner = [axis for axis in axes if axis in "CS"]  # declared as channels in the file
    outer = [axis for axis in axes if axis not in "YXCS"]
    count = int(np.prod([lengths[axis] for axis in outer], dtype=int))
    if count > 1 and stack is None:
        raise UserError(
            "one image in a file, or `stack` under [data], which says how to read the pages",
            f"{path}, a stack of {count} images",
            'Write stack = "samples" (each page a sample, all of one file on one side of the split), '
            '"channels" (one image), or "first".',
        )
    if stack == "channels":
        inner, outer = outer + inner, []
    alpha = "S" in lengths and page.photometric == 2 and bool(set(map(int, page.extrasamples)) & set(_ALPHA))
    channels = int(np.prod([lengths[axis] for axis in inner], dtype=int))
    shape = (-1, lengths["Y"], lengths["X"], channels)
    tag = page.tags.get(_ORIENTATION)
    orientation = int(tag.value) if tag is not None and int(tag.value) in range(1, 9) else 1
    dtype = np.dtype(np.uint8) if series.dtype == np.bool_ else series.dtype.newbyteorder("=")
    if dtype.kind not in "uif":
        raise UserError("images of real numbers", f"{path} of {dtype}", "Save the magnitude.")
    if page.photometric in NO_CHANNELS:
        raise UserError(
            "deep images and stacks of grey, RGB or other channels",
            f"{path}, {NO_CHANNELS[page.photometric]}",
            "Convert it to RGB.",
        )
    size, doubtful = rotate((lengths["Y"], lengths["X"]), orientation)
    used, left = count if stack == "samples" else 1, count - 1 + others if stack == "first" else 0
    header = Header(path, size, dtype, channels - alpha, "TIFF", doubtful, used, left)
    return header, [axes.index(axis) for axis in [*outer, "Y", "X", *inner]], shape, orientation


def _is_stack(picture: Image.Image) -> bool:
    """Whether a file has several pages; a smaller second one is a thumbnail or a level of a pyramid."""
    if getattr(picture, "n_frames", 1) == 1:
        return False
    width, height = picture.size
    picture.seek(1)
    second = picture.size
    picture.seek(0)
    return second[0] >= width and second[1] >= height


def _all(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)
