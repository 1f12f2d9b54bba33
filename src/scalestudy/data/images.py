"""Read one image file, or only its header, in the depth it was stored with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from scalestudy.data.open_image import opened
from scalestudy.data.source import Size
from scalestudy.errors import UserError

GREY_MODES = ("1", "L", "LA", "I;16", "I;16B", "I;16L")
COLOUR_MODES = ("RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "PA")
_WIDTH, _HEIGHT, _ORIENTATION, _BITS_PER_SAMPLE, _PHOTOMETRIC, _WHITE_IS_ZERO = 256, 257, 274, 258, 262, 0


@dataclass(frozen=True)
class Header:
    """What is known of an image before its pixels are decoded; `size` is (height, width), turned upright."""

    path: Path
    size: Size
    depth: int
    """Bits of a channel: 8 or 16."""
    colour: bool
    stored: Size
    """Height and width of the pixels as they are stored."""
    turned: bool
    """Whether its EXIF orientation turns or mirrors it."""


def read_header(path: Path) -> Header:
    """Read size, depth and channels of an image.

    Raises:
        UserError: the file is no readable image, or its pixels cannot be read without loss.
    """
    with opened(path) as picture:
        bits = _bits(picture)
        mode = picture.mode
        colour = mode in COLOUR_MODES or (mode == "P" and not _grey_palette(picture))
        if mode not in (*GREY_MODES, *COLOUR_MODES, "P") or (bits > 8 and not mode.startswith("I;16")):
            raise UserError(
                "8-bit images, grey or colour, or 16-bit grey ones without transparency",
                f"{path}, which is {_described(mode, bits)}",
                "Convert it to 16-bit grey or to 8-bit, or store the set as an .npz file of arrays.",
            )
        _refuse_stack(picture, path)
        stored, orientation = _stored(picture)
        depth = 16 if mode.startswith("I;16") else 8
        upright = stored[::-1] if orientation in (5, 6, 7, 8) else stored
        return Header(path, upright, depth, colour, stored, orientation != 1)


def read_image(path: Path, channels: int) -> npt.NDArray[Any]:
    """Decode an image as [H, W, channels] in its own depth (uint8 or uint16), upright, without alpha.

    Raises:
        UserError: the file is damaged.
    """
    with opened(path) as picture:
        upright = _upright(picture)
        if upright.mode.startswith("I;16"):
            grey = np.asarray(upright).astype(np.uint16)
            return (65535 - grey if _white_is_zero(picture) else grey)[:, :, None]
        if channels == 3:
            return np.asarray(upright.convert("RGB"))
        # A palette of greys holds the grey in each of its channels, so no weights of colours apply.
        grey = np.asarray(upright.convert("RGB"))[:, :, 0] if upright.mode == "P" else _luma(upright)
        return grey[:, :, None]


def read_mask(path: Path) -> npt.NDArray[Any]:
    """Decode a mask as [H, W] of its stored values (uint8 or uint16).

    A palette image gives its indices; a colour image whose channels are equal counts as grey.

    Raises:
        UserError: the file is damaged, or it is coloured.
    """
    with opened(path) as picture:
        raw = _raw_mode(picture)
        upright = _upright(picture)
        mode = upright.mode
        if mode == "P":
            return np.asarray(upright)
        if mode.startswith("I;16"):
            return np.asarray(upright).astype(np.uint16)
        if mode in ("1", "L", "LA"):
            grey = _luma(upright)
            # Pillow stretches 2- and 4-bit greys to 0..255; the stored values are the indices.
            return grey // {"L;2": 85, "L;4": 17}.get(raw, 1)
        if mode in ("RGB", "RGBA", "RGBX") and _bits(picture) == 8:
            colours = np.asarray(upright.convert("RGB"))
            if (colours == colours[:, :, :1]).all():
                return colours[:, :, 0]
            found = "whose red, green and blue differ"
        else:
            found = f"which is {_described(mode, _bits(picture))}"
    raise UserError(
        "masks of one channel: class indices, or 0 and 255",
        f"{path}, {found}",
        "Say which colour is which class (`colours` under [data]), or save each mask as a grey or palette "
        "PNG that holds the number of the class at each pixel.",
    )


def _upright(picture: Image.Image) -> Image.Image:
    # Pillow turns TIFFs by itself when it loads them.
    return picture if picture.format == "TIFF" else ImageOps.exif_transpose(picture)


def _stored(picture: Image.Image) -> tuple[Size, int]:
    """Height and width as stored, and the EXIF orientation (1 to 8; 1 without one)."""
    if picture.format == "TIFF":
        tags = picture.tag_v2  # type: ignore[attr-defined]
        size, orientation = (tags[_HEIGHT], tags[_WIDTH]), tags.get(_ORIENTATION, 1)
    else:
        size, orientation = picture.size[::-1], picture.getexif().get(_ORIENTATION, 1)
    return (int(size[0]), int(size[1])), orientation if orientation in range(1, 9) else 1


def _luma(picture: Image.Image) -> npt.NDArray[Any]:
    return np.asarray(picture if picture.mode == "L" else picture.convert("L"))


def _raw_mode(picture: Image.Image) -> str:
    """How the file stores its pixels, which Pillow's mode no longer tells."""
    tiles = getattr(picture, "tile", None)
    if not tiles:
        return picture.mode
    args = tiles[0][3]
    return str(args[0]) if isinstance(args, tuple) and args else str(args)


def _bits(picture: Image.Image) -> int:
    """Bits of a channel as stored: Pillow silently narrows 16-bit colour to 8."""
    if picture.format == "TIFF":
        bits = picture.tag_v2.get(_BITS_PER_SAMPLE, (8,))  # type: ignore[attr-defined]
        return int(max(bits) if isinstance(bits, tuple) else bits)
    if picture.mode in ("I", "F"):
        return 32
    return 16 if ";16" in _raw_mode(picture) or picture.mode.startswith("I;16") else 8


def _white_is_zero(picture: Image.Image) -> bool:
    return picture.format == "TIFF" and picture.tag_v2.get(_PHOTOMETRIC) == _WHITE_IS_ZERO  # type: ignore[attr-defined]


def _grey_palette(picture: Image.Image) -> bool:
    palette = np.asarray(picture.getpalette("RGB") or [], np.uint8).reshape(-1, 3)
    return bool((palette == palette[:, :1]).all())


def _refuse_stack(picture: Image.Image, path: Path) -> None:
    """Animations and stacks. Of a TIFF, a smaller second page is a thumbnail or the level of a pyramid."""
    frames = getattr(picture, "n_frames", 1)
    # Further pictures in a camera's JPEG are previews, depths or the other eye's: the first one is the image.
    if frames == 1 or picture.format not in ("TIFF", "PNG"):
        return
    size = picture.size
    if picture.format == "TIFF":
        picture.seek(1)
    if picture.size == size:
        kind = "a stack" if picture.format == "TIFF" else "an animation"
        raise UserError(
            "one image in a file",
            f"{path}, {kind} of {frames} images",
            "Save each of them to a file of its own.",
        )
    picture.seek(0)


def _described(mode: str, bits: int) -> str:
    kinds = {"I": "whole numbers", "F": "floating-point numbers", "LAB": "CIELAB colour", "HSV": "HSV colour"}
    if mode in kinds:
        return f"{bits}-bit {kinds[mode]}" if mode in ("I", "F") else kinds[mode]
    colour = "colour" if mode in COLOUR_MODES else "grey"
    return f"{bits}-bit {colour}" + (" with transparency" if mode in ("RGBA", "LA", "PA") else "")
