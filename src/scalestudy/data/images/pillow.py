"""What Pillow does not say of an image it has opened: how its pixels are stored, and which way is up."""

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from scalestudy.data.types import Size

COLOUR_MODES = ("RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "PA")
_WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC, _ORIENTATION, _WHITE_IS_ZERO = 256, 257, 258, 262, 274, 0


def upright(picture: Image.Image) -> Image.Image:
    """The image turned as its EXIF orientation says."""
    # Pillow turns TIFFs by itself when it loads them.
    return picture if picture.format == "TIFF" else ImageOps.exif_transpose(picture)


def stored(picture: Image.Image) -> tuple[Size, int]:
    """Height and width as stored, and the EXIF orientation (1 to 8; 1 without one)."""
    if picture.format == "TIFF":
        tags = picture.tag_v2  # type: ignore[attr-defined]
        size, orientation = (tags[_HEIGHT], tags[_WIDTH]), tags.get(_ORIENTATION, 1)
    else:
        size, orientation = picture.size[::-1], picture.getexif().get(_ORIENTATION, 1)
    return (int(size[0]), int(size[1])), orientation if orientation in range(1, 9) else 1


def bits(picture: Image.Image) -> int:
    """Bits of a channel as stored: Pillow silently narrows 16-bit colour to 8."""
    if picture.format == "TIFF":
        depth = picture.tag_v2.get(_BITS, (8,))  # type: ignore[attr-defined]
        return int(max(depth) if isinstance(depth, tuple) else depth)
    if picture.mode in ("I", "F"):
        return 32
    return 16 if ";16" in raw_mode(picture) or picture.mode.startswith("I;16") else 8


def raw_mode(picture: Image.Image) -> str:
    """How the file stores its pixels, which Pillow's mode no longer tells."""
    tiles = getattr(picture, "tile", None)
    if not tiles:
        return picture.mode
    args = tiles[0][3]
    return str(args[0]) if isinstance(args, tuple) and args else str(args)


def is_colour(picture: Image.Image) -> bool:
    """Whether it has colours, unlike a palette of greys. Asked before it is loaded: then Pillow forgets."""
    if raw_mode(picture).startswith("LA"):
        return False
    if picture.mode != "P":
        return picture.mode in COLOUR_MODES
    palette = np.asarray(picture.getpalette("RGB") or [], np.uint8).reshape(-1, 3)
    return not (palette == palette[:, :1]).all()


def white_is_zero(picture: Image.Image) -> bool:
    """Whether 16-bit greys are stored as in a negative; Pillow turns those of 8 bits itself."""
    return picture.format == "TIFF" and picture.tag_v2.get(_PHOTOMETRIC) == _WHITE_IS_ZERO  # type: ignore[attr-defined]


def luma(picture: Image.Image) -> npt.NDArray[Any]:
    """Greys [H, W]."""
    return np.asarray(picture if picture.mode == "L" else picture.convert("L"))


def is_see_through(picture: Image.Image) -> bool:
    """Whether any pixel is transparent, wholly or in part."""
    if picture.mode in ("RGBA", "LA"):
        lowest, _ = picture.getchannel("A").getextrema()
    elif picture.mode == "PA" or "transparency" in picture.info:
        lowest, _ = picture.convert("RGBA").getchannel("A").getextrema()
    else:
        return False
    return int(lowest) < 255  # type: ignore[arg-type]


def described(mode: str, depth: int) -> str:
    """An image of that mode and so many bits a channel, in words."""
    kinds = {"I": "whole numbers", "F": "floating-point numbers", "LAB": "CIELAB colour", "HSV": "HSV colour"}
    if mode in kinds:
        return f"{depth}-bit {kinds[mode]}" if mode in ("I", "F") else kinds[mode]
    colour = "colour" if mode in COLOUR_MODES else "grey"
    return f"{depth}-bit {colour}" + (" with transparency" if mode in ("RGBA", "LA", "PA") else "")
