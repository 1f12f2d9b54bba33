"""Read one image file, or only its header, in the depth it was stored with.

Pillow reads what it reads without loss. tifffile and imagecodecs read the rest: floats, 32 bits, 16-bit
colour, more channels than colours, stacks.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from scalestudy.data.images import pillow, tiff
from scalestudy.data.images.open import opened, refusing
from scalestudy.data.images.tiff import Stack
from scalestudy.data.types import Size
from scalestudy.util.errors import UserError

Array = npt.NDArray[Any]

GREY_MODES = ("1", "L", "LA", "I;16", "I;16B", "I;16L")
DEEP_PNG_MODES = ("RGB", "RGBA", "LA")


@dataclass(frozen=True)
class Header:
    """What is known of an image before its pixels are decoded; `size` is (height, width), turned upright."""

    path: Path
    size: Size
    dtype: np.dtype[Any]
    """Of the pixels as they are stored."""
    channels: int
    """Without alpha."""
    stored: Size
    """Height and width of the pixels as they are stored."""
    turned: bool
    """Whether its EXIF orientation turns or mirrors it."""
    pages: int = 1
    """Images in the file, each of which is a sample."""
    left: int = 0
    """Further images in the file, which are left out."""

    @property
    def colour(self) -> bool:
        """Whether its channels are red, green and blue."""
        return self.channels == 3


@dataclass(frozen=True)
class Pixels:
    """A decoded file: `values` of shape [pages, H, W, channels], upright, as stored, without alpha."""

    values: Array
    see_through: bool
    """Whether an alpha channel was dropped that is not opaque everywhere."""


def read_header(path: Path, stack: Stack | None = None) -> Header:
    """Read size, type and channels of an image.

    Args:
        path: The file.
        stack: What the pages of a TIFF are, where there are several.

    Raises:
        UserError: the file is no readable image, or its pixels cannot be read without loss.
    """
    if _is_deep_tiff(path):
        with refusing(path):
            pages = _seen(tiff.read_pages(path, stack), path)
        upright = pages.size[::-1] if pages.orientation >= 5 else pages.size
        turned = pages.orientation != 1
        return Header(path, upright, pages.dtype, pages.channels, pages.size, turned, pages.count, pages.left)
    with opened(path) as picture:
        depth, mode = pillow.bits(picture), picture.mode
        channels = 3 if pillow.is_colour(picture) else 1
        deep = depth > 8 and not mode.startswith("I;16")
        known = mode in (*GREY_MODES, *pillow.COLOUR_MODES, "P")
        if not known or (deep and not _is_deep_png(picture)):
            raise UserError(
                "images of grey, RGB or CMYK colour, a palette or channels, with 1 to 32 bits each",
                f"{path}, which is {pillow.described(mode, depth)}",
                "Convert it to 16-bit TIFF or PNG, or store the set as an .npz file of arrays.",
            )
        _refuse_animation(picture, path)
        stored, orientation = pillow.stored(picture)
        dtype = np.dtype(np.uint16 if depth == 16 or mode.startswith("I;16") else np.uint8)
        upright = stored[::-1] if orientation in (5, 6, 7, 8) else stored
        return Header(path, upright, dtype, channels, stored, orientation != 1)


def read_pixels(path: Path, stack: Stack | None = None) -> Pixels:
    """Decode an image, or the pages of a TIFF. What is very large is decoded to the disk.

    Raises:
        UserError: the file is damaged.
    """
    if _is_deep_tiff(path):
        with refusing(path):
            pages, values = tiff.read_stack(path, stack)
            return _without_alpha(values, _seen(pages, path).channels)
    with opened(path) as picture:
        if _is_deep_png(picture):
            import imagecodecs

            decoded: Array = imagecodecs.png_decode(path.read_bytes())
            channels = 3 if pillow.is_colour(picture) else 1
            _, orientation = pillow.stored(picture)
            return _without_alpha(tiff.upright(np.atleast_3d(decoded)[None], orientation), channels)
        upright = pillow.upright(picture)
        see_through = pillow.is_see_through(upright)
        if upright.mode.startswith("I;16"):
            grey = np.asarray(upright).astype(np.uint16)
            values = (65535 - grey if pillow.white_is_zero(picture) else grey)[:, :, None]
        elif pillow.is_colour(upright):
            values = np.asarray(upright.convert("RGB"))
        else:
            # A palette of greys holds the grey in each of its channels, so no weights of colours apply.
            palette = upright.mode == "P"
            values = np.asarray(upright.convert("RGB")) if palette else pillow.luma(upright)[:, :, None]
            values = values[:, :, :1]
        return Pixels(values[None], see_through)


def read_image(path: Path, channels: int) -> Array:
    """Decode an image as [H, W, channels] as it is stored, upright, without alpha; greys fill all channels.

    Raises:
        UserError: the file is damaged.
    """
    values = read_pixels(path).values[0]
    if channels == 1 and values.shape[2] == 3 and values.dtype == np.uint8:
        return pillow.luma(Image.fromarray(values))[:, :, None]
    return np.repeat(values, channels, axis=2) if values.shape[2] < channels else values


def read_mask(path: Path, stack: Stack | None = None) -> Array:
    """Decode a mask as [H, W] of its stored whole numbers; a stack of samples as [pages, H, W].

    A palette image gives its indices; a colour image whose channels are equal counts as grey.

    Raises:
        UserError: the file is damaged, coloured, or holds other than whole numbers.
    """
    if not _is_deep_tiff(path):
        with opened(path) as picture:
            raw, upright = pillow.raw_mode(picture), pillow.upright(picture)
            if upright.mode == "P":
                return _paged(np.asarray(upright)[None], stack)
            if upright.mode in ("1", "L", "LA"):
                # Pillow stretches 2- and 4-bit greys to 0..255; the stored values are the indices.
                grey = pillow.luma(upright) // {"L;2": 85, "L;4": 17}.get(raw, 1)
                return _paged(grey[None], stack)
            coloured = None
            if upright.mode not in ("RGB", "RGBA", "RGBX") and not upright.mode.startswith("I;16"):
                coloured = f"which is {pillow.described(upright.mode, pillow.bits(picture))}"
        if coloured:
            raise _no_mask(path, coloured)
        values = read_pixels(path).values
    else:
        with refusing(path):
            pages, values = tiff.read_stack(path, stack)
            values = values[..., : pages.channels]
    if not (values == values[..., :1]).all():
        channels = "red, green and blue" if values.shape[-1] == 3 else f"{values.shape[-1]} channels"
        raise _no_mask(path, f"whose {channels} differ")
    return _paged(_whole(values[..., 0], path), stack)


def _paged(mask: Array, stack: Stack | None) -> Array:
    return mask if stack == "samples" else mask[0]


def _whole(mask: Array, path: Path) -> Array:
    """A mask of floats, as ImageJ writes them, as the whole numbers that they are."""
    if mask.dtype.kind != "f":
        return mask
    if not (np.isfinite(mask).all() and (mask == np.rint(mask)).all()):
        raise _no_mask(path, "with values that are no whole numbers")
    return mask.astype(np.int64)


def _no_mask(path: Path, received: str) -> UserError:
    return UserError(
        "masks of one channel: class indices, or 0 and 255",
        f"{path}, {received}",
        "Say which colour is which class (`colours` under [data]), or save each mask as a grey or palette "
        "PNG that holds the number of the class at each pixel.",
    )


def _seen(pages: tiff.Pages, path: Path) -> tiff.Pages:
    """The pages, if their channels are what is seen, in real numbers."""
    if pages.dtype.kind not in "uif":
        raise UserError("images of real numbers", f"{path} of {pages.dtype}", "Save their magnitude.")
    if pages.photometric in tiff.NO_CHANNELS:
        raise UserError(
            "deep images and stacks of grey, RGB or other channels",
            f"{path}, {tiff.NO_CHANNELS[pages.photometric]}",
            "Convert it to RGB.",
        )
    return pages


def _without_alpha(values: Array, channels: int) -> Pixels:
    alpha = values[..., channels:]
    opaque = np.iinfo(alpha.dtype).max if alpha.dtype.kind in "iu" else 1
    return Pixels(values[..., :channels], bool(alpha.size and (alpha != opaque).any()))


def _is_deep_tiff(path: Path) -> bool:
    """Whether a file is a TIFF that Pillow would read with a loss, or not at all."""
    with refusing(path):
        if not tiff.is_tiff(path):
            return False
        try:
            with Image.open(path, formats=("TIFF",)) as picture:
                return not tiff.is_plain(picture)
        except Image.DecompressionBombError:
            return True  # read in parts
        except Exception:  # Pillow knows no name for such pixels
            return True


def _is_deep_png(picture: Image.Image) -> bool:
    return picture.format == "PNG" and picture.mode in DEEP_PNG_MODES and pillow.bits(picture) == 16


def _refuse_animation(picture: Image.Image, path: Path) -> None:
    # Further pictures in a camera's JPEG are previews, depths or the other eye's: the first one is the image.
    frames = getattr(picture, "n_frames", 1)
    if frames > 1 and picture.format in ("PNG", "GIF", "WEBP"):
        raise UserError(
            "one image in a file",
            f"{path}, an animation of {frames} images",
            "Save each of them to a file of its own.",
        )
