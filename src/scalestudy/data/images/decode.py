"""Read one image file, or only its header, in its stored depth: TIFF by tifffile, other formats by Pillow."""

import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from scalestudy.data.samples import Array, Size
from scalestudy.util.errors import UserError

# Damaged files are refused with a message; other files can be read.
warnings.filterwarnings("ignore", "Corrupt EXIF data", UserWarning)
# Pillow warns from half of its size limit on.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")
"""Formats that Pillow reads; the content of a file decides, not its name."""
GREY_MODES = ("1", "L", "LA", "I;16", "I;16B", "I;16L")
COLOUR_MODES = ("RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "PA")
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""First bytes of a TIFF; the last two are BigTIFF."""
_ORIENTATION = 274
"""Tag of EXIF and TIFF: 1 is upright, 2 to 8 are turned or mirrored."""
_RGB, _PALETTE, _YCBCR = 2, 3, 6
_PHOTOMETRIC = (0, 1, _RGB, _PALETTE, _YCBCR)
"""Interpretations of TIFF whose values are brightness, RGB (as YCbCr of JPEG is decoded) or indices."""
_ALPHA = {1, 2}
"""Extra samples of TIFF that are opacity: associated or not."""
_STRETCHED = {"L;2": 85, "L;4": 17}
"""Factors by which Pillow stretches greys of 2 and of 4 bits."""


@dataclass(frozen=True)
class Header:
    """Properties of an image that are known before its pixels are decoded.

    Attributes:
        size: Height and width, upright.
        dtype: Stored type of the pixels.
        channels: Channels without alpha.
        doubtful: Whether the EXIF orientation turns or mirrors the image without changing its size.
    """

    path: Path
    size: Size
    dtype: np.dtype[Any]
    channels: int
    doubtful: bool = False


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Convert errors of a decoder inside the block to errors that name the file.

    Raises:
        UserError: If the file is missing, not readable, too large or damaged.
    """
    try:
        yield
    # It names the file already.
    except UserError:
        raise
    except (PermissionError, FileNotFoundError) as error:
        raise UserError(
            "readable images that do not change meanwhile",
            f"{path}: {error.strerror}",
            "Correct its permissions, or wait until nothing changes the data set, and run again.",
        ) from error
    except Image.DecompressionBombError as error:
        raise UserError(
            f"images of at most {2 * (Image.MAX_IMAGE_PIXELS or 0):,} pixels",
            f"{path}, a larger one (or a damaged file that says so)",
            "Save it as TIFF, which may be larger, or cut it into tiles, or scale it down.",
        ) from error
    except Exception as error:  # decoders raise OSError, SyntaxError, struct.error, ...
        if "imagecodecs" in str(error):  # which tifffile does not install
            raise UserError(
                "the package imagecodecs, to decode compressed TIFF",
                f"none, and {path}",
                "Install it: pip install imagecodecs.",
            ) from error
        raise UserError(
            "images that can be read",
            f"{path}: {_fault(path, error)}",
            "Replace it by an intact copy, or remove it (an image together with its mask).",
        ) from error


def _fault(path: Path, error: Exception) -> str:
    if path.stat().st_size == 0:
        return "an empty file"
    if isinstance(error, UnidentifiedImageError):
        return "no image inside of a format that is read"
    return str(error).replace(f" '{path}'", "") or type(error).__name__


@contextmanager
def open_image(path: Path) -> Iterator[Image.Image]:
    """Open an image with Pillow for the block; errors of its decoder inside the block name the file too.

    Raises:
        UserError: If the file is missing, not readable, too large or damaged.
    """
    # Only these formats: other readers of Pillow start programs.
    with refusing(path), Image.open(path, formats=_FORMATS) as picture:
        yield picture


def read_header(path: Path) -> Header:
    """Read size, type and channels of an image.

    Raises:
        UserError: If the file is not a readable image, or its pixels cannot be read without loss.
    """
    if _is_tiff(path):
        header, _ = _read_tiff(path, decode=False)
        return header
    with open_image(path) as picture:
        mode = picture.mode
        raw_mode = _raw_mode(picture)
        grey16 = mode.startswith("I;16")
        # Pillow silently converts 16-bit colour to 8 bits.
        lossy = ";16" in raw_mode and not grey16
        if lossy:
            mode = raw_mode
        if lossy or mode not in (*GREY_MODES, *COLOUR_MODES, "P"):
            raise UserError(
                "grey images of up to 16 bits, or colours of 8 bits; other ones as TIFF",
                f"{path}, in Pillow's mode {mode}",
                "Convert it to TIFF, or store the set as an .npz file of arrays.",
            )
        frames = getattr(picture, "n_frames", 1)
        # Further pictures in a camera's JPEG are previews, depth maps or stereo partners: use the first.
        if frames > 1 and picture.format in ("PNG", "GIF", "WEBP"):
            raise _several(path, frames)
        width, height = picture.size
        orientation = picture.getexif().get(_ORIENTATION, 1)
        size, doubtful = _turned((height, width), orientation)
        dtype = np.dtype(np.uint16 if grey16 else np.uint8)
        channels = 3 if is_colour(picture) else 1
        return Header(path, size, dtype, channels, doubtful)


def read_pixels(path: Path) -> Array:
    """Decode an image to its stored values without alpha, upright, shape [H, W, channels].

    Raises:
        UserError: If the file is damaged.
    """
    if _is_tiff(path):
        header, values = _read_tiff(path, decode=True)
        return values[..., : header.channels]
    with open_image(path) as picture:
        upright = ImageOps.exif_transpose(picture)
        if upright.mode.startswith("I;16"):
            grey16 = np.asarray(upright).astype(np.uint16)
            return grey16[:, :, None]
        if is_colour(upright):
            return _rgb(upright)
        if upright.mode == "P":
            # All channels of a grey palette are equal: take the first, without luma weights.
            return _rgb(upright)[:, :, :1]
        return _luma(upright)[:, :, None]


def read_mask(path: Path) -> Array:
    """Decode a mask to its stored integers [H, W].

    A palette image gives its indices. A colour image with equal channels counts as grey.

    Raises:
        UserError: If the file is damaged or coloured, or its values are not integers.
    """
    if _is_tiff(path):
        header, values = _read_tiff(path, decode=True, palette=True)
        values = values[..., : header.channels]
    else:
        with open_image(path) as picture:
            # Before Pillow transposes, which loads the pixels and forgets how they were stored.
            raw_mode = _raw_mode(picture)
            upright = ImageOps.exif_transpose(picture)
            mode = upright.mode
            if mode == "P":
                return np.asarray(upright)
            if mode in ("1", "L", "LA"):
                # Pillow stretches 2- and 4-bit greys to 0..255; the stored values are the indices.
                step = _STRETCHED.get(raw_mode, 1)
                return _luma(upright) // step
            colour = mode in ("RGB", "RGBA", "RGBX")
            if not colour and not mode.startswith("I;16"):
                raise _no_mask(path, f"in Pillow's mode {mode}")
        values = read_pixels(path)
    mask = values[..., 0]
    if not (values == mask[..., None]).all():
        count = values.shape[-1]
        if count != 3:
            raise _no_mask(path, f"whose {count} channels differ")
        received = "whose red, green and blue differ"
        if values.dtype == np.uint8:
            raise ColouredMaskError(path, received)
        raise _no_mask(path, received)
    if mask.dtype.kind != "f":
        return mask
    # ImageJ writes class indices as floats.
    if not np.isfinite(mask).all() or not (mask == np.rint(mask)).all():
        raise _no_mask(path, "with values that are no whole numbers")
    return mask.astype(np.int64)


class ColouredMaskError(UserError):
    """A mask of 8-bit colours is read as numbers.

    Attributes:
        path: The mask.
    """

    def __init__(self, path: Path, received: str) -> None:
        super().__init__(*_parts_of_no_mask(path, received))
        self.path = path


def _no_mask(path: Path, received: str) -> UserError:
    return UserError(*_parts_of_no_mask(path, received))


def _parts_of_no_mask(path: Path, received: str) -> tuple[str, str, str]:
    return (
        "masks of one channel: class indices, or 0 and 255",
        f"{path}, {received}",
        "Say which colour is which class (`colours` under [data]), or save each mask as a grey or palette "
        "PNG that holds the number of the class at each pixel.",
    )


def _several(path: Path, count: int) -> UserError:
    return UserError(
        "one image in a file",
        f"{path} with {count} (an animation, or a stack of pages)",
        "Save each image to its own file, or read the set yourself: `read(data)` in a task file.",
    )


def _turned(stored: Size, orientation: int) -> tuple[Size, bool]:
    """Return the upright size, and whether the image is turned or mirrored without a change of size."""
    upright = stored[::-1] if orientation in (5, 6, 7, 8) else stored
    return upright, orientation in range(2, 9) and upright == stored


# Properties that Pillow does not report for an open image.


def _raw_mode(picture: Image.Image) -> str:
    """Return the mode in which the file stores its pixels, which may differ from Pillow's mode."""
    tiles = getattr(picture, "tile", None)
    if not tiles:
        return picture.mode
    # A tile is (decoder, box, offset, arguments); the first argument is the stored mode, except for GIF.
    *_, args = tiles[0]
    if isinstance(args, tuple) and args:
        return str(args[0])
    return str(args)


def is_colour(picture: Image.Image) -> bool:
    """Whether an image has colours; a grey palette has none. Call it before Pillow loads the pixels."""
    if picture.mode != "P":
        return picture.mode in COLOUR_MODES and not _raw_mode(picture).startswith("LA")
    levels = picture.getpalette("RGB") or []
    palette = np.asarray(levels, np.uint8).reshape(-1, 3)
    red = palette[:, :1]
    return not (palette == red).all()


def _rgb(picture: Image.Image) -> Array:
    return np.asarray(picture.convert("RGB"))


def _luma(picture: Image.Image) -> Array:
    if picture.mode != "L":
        picture = picture.convert("L")
    return np.asarray(picture)


def _is_tiff(path: Path) -> bool:
    with refusing(path), path.open("rb") as stream:
        return stream.read(4) in _TIFF


def _read_tiff(
    path: Path,
    *,
    decode: bool,
    palette: bool = False,
) -> tuple[Header, Array]:
    """Read the header of a TIFF and, if asked, its pixels, upright, shape [H, W, channels and alpha].

    Smaller pages beside the first one are thumbnails or levels of a pyramid. A palette's indices are no
    brightness, so they are refused unless asked for.
    """
    import tifffile

    # What matters of its warnings is raised as errors below.
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    with refusing(path), tifffile.TiffFile(path) as file:
        series = file.series[0]
        page = series.keyframe
        axes = series.axes
        lengths = dict(zip(axes, series.shape, strict=True))
        inner = [axis for axis in axes if axis in "CS"]  # declared as channels
        outer = [axis for axis in axes if axis not in "YXCS"]
        images = _product(lengths, outer) + _as_large(file.series)
        if images > 1:
            raise _several(path, images)
        dtype = np.dtype(np.uint8)
        if series.dtype != np.bool_:
            dtype = series.dtype.newbyteorder("=")
        photometric = page.photometric
        if dtype.kind not in "uif" or photometric not in _PHOTOMETRIC:
            raise UserError(
                "TIFF files of grey, RGB or other channels",
                f"{path} of {dtype}, photometric interpretation {photometric}",
                "Convert it to RGB.",
            )
        if photometric == _PALETTE and not palette:
            raise UserError(
                "grey or RGB images in TIFF files",
                f"{path}, of a palette",
                "Convert it to RGB.",
            )
        # tifffile reads segments beyond the end of the file as zeros.
        file_size = file.filehandle.size
        if any(_is_truncated(each, file_size) for each in series.pages):
            raise ValueError("truncated: its pixels end beyond the file")
        stored = _product(lengths, inner)
        channels = stored
        if "S" in lengths and _has_alpha(page):
            channels -= 1
        tag = page.tags.get(_ORIENTATION)
        orientation = 1 if tag is None else int(tag.value)
        height, width = lengths["Y"], lengths["X"]
        size, doubtful = _turned((height, width), orientation)
        header = Header(path, size, dtype, channels, doubtful)
        if not decode:
            return header, np.zeros(0)
        order = [axes.index(axis) for axis in [*outer, "Y", "X", *inner]]
        values: Array = series.asarray().transpose(order)
        values = values.reshape(height, width, stored)
        if values.dtype == np.bool_:
            values = values.astype(np.uint8) * 255
        if photometric == 0 and values.dtype.kind == "u":  # white is zero
            values = np.invert(values)
        return header, _upright(values, orientation)


def _product(lengths: dict[str, int], axes: Sequence[str]) -> int:
    return math.prod([lengths[axis] for axis in axes])


def _as_large(series: Sequence[Any]) -> int:
    """Count the images besides the first that are as large: smaller ones are thumbnails or levels."""
    first, *others = [math.prod(each.shape) for each in series]
    return len([size for size in others if size >= first])


def _has_alpha(page: Any) -> bool:
    extra = set(map(int, page.extrasamples))
    return page.photometric == _RGB and bool(_ALPHA & extra)


def _is_truncated(page: Any, size: int) -> bool:
    """Whether a page is missing, or a segment of it ends beyond the `size` of its file."""
    if page is None:
        return True
    segments = zip(page.dataoffsets, page.databytecounts, strict=True)
    return any(start + length > size for start, length in segments)


def _upright(image: Array, orientation: int) -> Array:
    """Apply an EXIF orientation to an image [H, W, C]."""
    if orientation in (5, 6, 7, 8):
        image = image.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        image = image[::-1]
    return image[:, ::-1] if orientation in (2, 3, 6, 7) else image
