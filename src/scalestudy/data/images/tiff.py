"""TIFF files that Pillow cannot read without loss: floats, 32 bits, 16-bit colour, many channels, stacks."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from scalestudy.data.types import Array
from scalestudy.util.errors import UserError

Stack = Literal["samples", "channels", "first"]

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""How a TIFF begins; the last two are BigTIFF."""
LARGEST_IN_MEMORY = 2**28
"""Bytes of pixels above which a file is decoded to the disk, and read from there."""
_BITS, _COMPRESSION, _ORIENTATION, _SAMPLES, _EXTRA, _FORMAT = 258, 259, 274, 277, 338, 339
_PLAIN_COMPRESSIONS = (1, 2, 3, 4, 5, 6, 7, 8, 32773, 32946)
"""None, those of fax, LZW, JPEG, deflate, PackBits: what every Pillow was built with."""
_ALPHA = (1, 2)
NO_CHANNELS = {3: "a stack of palette images", 5: "CMYK colour", 8: "CIELAB colour"}
"""Photometric kinds of which the channels are not what is seen."""
_CHANNELS = dict.fromkeys(("1", "L", "P", "I;16", "I;16B", "LA"), 1) | {
    "RGB": 3, "RGBA": 3, "CMYK": 4, "YCbCr": 3,
}  # fmt: skip


@dataclass(frozen=True)
class Pages:
    """What a TIFF holds: `count` images [H, W, channels], of which each may have alpha beside its channels.

    Attributes:
        size: Height and width as stored.
        dtype: Of the pixels.
        channels: Channels of an image, without alpha.
        count: Images in the file that are taken.
        left: Images in the file that are not.
        orientation: As in EXIF, 1 to 8.
        photometric: What the channels are, as TIFF numbers it.
    """

    size: tuple[int, int]
    dtype: np.dtype[Any]
    channels: int
    count: int
    left: int
    orientation: int
    photometric: int


def is_tiff(path: Path) -> bool:
    """Whether a file is one by its first bytes."""
    with path.open("rb") as stream:
        return stream.read(4) in MAGIC


def is_plain(picture: Image.Image) -> bool:
    """Whether Pillow reads this TIFF without loss: one page of 8 bits, or of 16-bit grey, and no more."""
    tags = picture.tag_v2  # type: ignore[attr-defined]
    if picture.mode not in _CHANNELS or _is_stack(picture):
        return False
    bits, formats = (_all(tags.get(tag, default)) for tag, default in ((_BITS, 1), (_FORMAT, 1)))
    extra = [kind for kind in _all(tags.get(_EXTRA, ())) if kind in _ALPHA]
    samples = tags.get(_SAMPLES, 1) - len(extra)
    if tags.get(_COMPRESSION, 1) not in _PLAIN_COMPRESSIONS:
        return False
    deep = max(bits) > 8 and not picture.mode.startswith("I;16")
    # Whole numbers of as many channels as Pillow's mode has.
    return not deep and set(formats) == {1} and samples == _CHANNELS[picture.mode]


def read_pages(path: Path, stack: Stack | None) -> Pages:
    """What the file holds, without decoding it; `stack` says what its pages are, where there are several.

    Raises:
        UserError: It has several pages, and nobody says what they are.
    """
    with _series(path, stack) as (series, others):
        return _pages(path, series, others, stack)[0]


def read_stack(path: Path, stack: Stack | None) -> tuple[Pages, Array]:
    """Decode all images, shape [count, H, W, channels (and alpha)], upright; what is large stays on the disk.

    Raises:
        UserError: As `read_pages`.
    """
    with _series(path, stack) as (series, others):
        pages, order, shape = _pages(path, series, others, stack)
        array: Array = series.asarray(out="memmap" if series.nbytes > LARGEST_IN_MEMORY else None)
        white_is_zero = series.keyframe.photometric == 0 and array.dtype.kind in "bu"
        array = array.transpose(order).reshape(shape)[: pages.count]
        if array.dtype == np.bool_:
            array = array.astype(np.uint8) * 255
        return pages, upright(np.invert(array) if white_is_zero else array, pages.orientation)


def upright(images: Array, orientation: int) -> Array:
    """Images [N, H, W, C] turned and mirrored as their EXIF orientation says."""
    if orientation >= 5:
        images = images.swapaxes(1, 2)
    if orientation in (3, 4, 7, 8):
        images = images[:, ::-1]
    return images[:, :, ::-1] if orientation in (2, 3, 6, 7) else images


@contextmanager
def _series(path: Path, stack: Stack | None) -> Iterator[tuple[Any, int]]:
    """The first series of pages of one form, and how many pages of another form are no smaller.

    Smaller ones are thumbnails, and the levels of a pyramid.
    """
    import tifffile

    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # what matters of its remarks is raised
    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        for page in series.pages:  # segments beyond the end of the file would be read as zeros
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
) -> tuple[Pages, list[int], tuple[int, ...]]:
    """The pages; the order that brings the axes to pages, height, width, channels; and the shape of that."""
    axes, lengths, page = series.axes, dict(zip(series.axes, series.shape, strict=True)), series.keyframe
    if "Y" not in lengths or "X" not in lengths:
        raise ValueError(f"its axes are {axes}, without height and width")
    inner = [axis for axis in axes if axis in "CS"]  # what a file calls channels are channels
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
    pages = Pages(
        (lengths["Y"], lengths["X"]), dtype, channels - alpha, count if stack == "samples" else 1,
        count - 1 + others if stack == "first" else 0, orientation,
        -1 if page.photometric is None else int(page.photometric),
    )  # fmt: skip
    return pages, [axes.index(axis) for axis in [*outer, "Y", "X", *inner]], shape


def _is_stack(picture: Image.Image) -> bool:
    """Whether there are pages; a smaller second one is a thumbnail or a level of a pyramid."""
    if getattr(picture, "n_frames", 1) == 1:
        return False
    width, height = picture.size
    picture.seek(1)
    second = picture.size
    picture.seek(0)
    return second[0] >= width and second[1] >= height


def _all(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)
