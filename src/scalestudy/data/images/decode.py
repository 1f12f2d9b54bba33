"""Read one image file, or only its header, in its stored depth.

Pillow reads the files that it can read without loss. tifffile and imagecodecs read the others: floats, 32
bits, 16-bit colour, multi-channel images, stacks.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from scalestudy.data.images import tiff
from scalestudy.data.images.tiff import Header, Stack
from scalestudy.data.samples import Array, Size
from scalestudy.util.errors import UserError

# Damaged files are refused with a message; other files can be read.
warnings.filterwarnings("ignore", "Corrupt EXIF data", UserWarning)
# Pillow warns from half of its size limit on.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP")
"""Formats that are read; the content of a file decides, not its name."""


class DamagedFile(UserError):
    """A file that is not an image, or is truncated or broken.

    Attributes:
        path: The file.
        reason: Kind of damage.
    """

    def __init__(self, path: Path, reason: str, message: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(
            "images that can be read",
            f"{path}: {message}",
            "Replace it by an intact copy, or go on without damaged files: --skip-bad, or skip_bad = true "
            "under [data].",
        )


@contextmanager
def open_image(path: Path) -> Iterator[Image.Image]:
    """Open an image for the block; errors of its decoder inside the block name the file too.

    Raises:
        UserError: If the file is missing, not readable, too large or damaged.
    """
    # Only these formats: other readers of Pillow start programs.
    with refusing(path), Image.open(path, formats=_FORMATS) as picture:
        yield picture


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Convert errors of a decoder inside the block to errors that name the file.

    Raises:
        UserError: If the file is missing, not readable, too large or damaged.
    """
    try:
        yield
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
    except Exception as error:  # Pillow's decoders raise OSError, SyntaxError, struct.error, ...
        if "imagecodecs" in str(error):  # which neither Pillow nor tifffile installs
            expected = "the package imagecodecs, to decode compressed TIFF and colour PNG of 16 bits"
            raise UserError(expected, f"none, and {path}", "Install it: pip install imagecodecs.") from error
        raise DamagedFile(path, *_fault(path, error)) from error


def _fault(path: Path, error: Exception) -> tuple[str, str]:
    message = str(error).replace(f" '{path}'", "") or type(error).__name__
    if path.stat().st_size == 0:
        return ("an empty file",) * 2
    if isinstance(error, UnidentifiedImageError):
        return ("no image inside of a format that is read",) * 2
    return ("truncated" if "truncated" in message.lower() else "broken"), message


GREY_MODES = ("1", "L", "LA", "I;16", "I;16B", "I;16L")
COLOUR_MODES = ("RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "PA")
DEEP_PNG_MODES = ("RGB", "RGBA", "LA")
_WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC, _ORIENTATION = 256, 257, 258, 262, 274


@dataclass(frozen=True)
class Pixels:
    """A decoded file.

    Attributes:
        values: Stored values without alpha, upright, shape [pages, H, W, channels].
        see_through: Whether a dropped alpha channel was not opaque everywhere.
    """

    values: Array
    see_through: bool


def read_header(path: Path, stack: Stack | None = None) -> Header:
    """Read size, type and channels of an image; `stack` is the meaning of the pages of a TIFF.

    Raises:
        UserError: If the file is not a readable image, or its pixels cannot be read without loss.
    """
    if _is_deep_tiff(path):
        with refusing(path):
            return tiff.read_pages(path, stack)
    with open_image(path) as picture:
        depth, mode = _bits(picture), picture.mode
        channels = 3 if is_colour(picture) else 1
        deep = depth > 8 and not mode.startswith("I;16")
        known = mode in (*GREY_MODES, *COLOUR_MODES, "P")
        if not known or (deep and not _is_deep_png(picture)):
            raise UserError(
                "grey, RGB, CMYK, palette or multi-channel images with 1 to 32 bits per channel",
                f"{path}, of {depth} bits in Pillow's mode {mode}",
                "Convert it to 16-bit TIFF or PNG, or store the set as an .npz file of arrays.",
            )
        # Further pictures in a camera's JPEG are previews, depth maps or stereo partners: use the first.
        frames = getattr(picture, "n_frames", 1)
        if frames > 1 and picture.format in ("PNG", "GIF", "WEBP"):
            raise UserError(
                "one image in a file",
                f"{path}, an animation of {frames} images",
                "Save each image to its own file.",
            )
        size, doubtful = tiff.rotate(*_stored(picture))
        dtype = np.dtype(np.uint16 if depth == 16 or mode.startswith("I;16") else np.uint8)
        return Header(path, size, dtype, channels, str(picture.format), doubtful)


def read_pixels(path: Path, stack: Stack | None = None) -> Pixels:
    """Decode an image, or the pages of a TIFF. Very large images are decoded to a file on disk.

    Raises:
        UserError: If the file is damaged.
    """
    if _is_deep_tiff(path):
        with refusing(path):
            header, values = tiff.read_stack(path, stack)
            return _without_alpha(values, header.channels)
    with open_image(path) as picture:
        if _is_deep_png(picture):
            import imagecodecs

            decoded: Array = imagecodecs.png_decode(path.read_bytes())
            channels = 3 if is_colour(picture) else 1
            _, orientation = _stored(picture)
            return _without_alpha(tiff.upright(np.atleast_3d(decoded)[None], orientation), channels)
        upright = _upright(picture)
        see_through = _is_see_through(upright)
        if upright.mode.startswith("I;16"):
            grey = np.asarray(upright).astype(np.uint16)
            values = (65535 - grey if _is_white_zero(picture) else grey)[:, :, None]
        elif is_colour(upright):
            values = np.asarray(upright.convert("RGB"))
        elif upright.mode == "P":
            # All channels of a grey palette are equal: take the first, without luma weights.
            values = np.asarray(upright.convert("RGB"))[:, :, :1]
        else:
            values = _luma(upright)[:, :, None]
        return Pixels(values[None], see_through)


def read_mask(path: Path, stack: Stack | None = None) -> Array:
    """Decode a mask to its stored integers [H, W]; a stack of samples to [pages, H, W].

    A palette image gives its indices. A colour image with equal channels counts as grey.

    Raises:
        UserError: If the file is damaged or coloured, or its values are not integers.
    """
    if _is_deep_tiff(path):
        with refusing(path):
            header, values = tiff.read_stack(path, stack)
            values = values[..., : header.channels]
    else:
        with open_image(path) as picture:
            raw, upright = _raw_mode(picture), _upright(picture)
            mode = upright.mode
            if mode in ("P", "1", "L", "LA"):
                # Pillow stretches 2- and 4-bit greys to 0..255; the stored values are the indices.
                levels = {"L;2": 85, "L;4": 17}.get(raw, 1)
                mask = np.asarray(upright) if mode == "P" else _luma(upright) // levels
                return mask[None] if stack == "samples" else mask
            if mode not in ("RGB", "RGBA", "RGBX") and not mode.startswith("I;16"):
                raise _no_mask(path, f"in Pillow's mode {mode}")
        values = read_pixels(path).values
    if not (values == values[..., :1]).all():
        channels = "red, green and blue" if values.shape[-1] == 3 else f"{values.shape[-1]} channels"
        raise _no_mask(path, f"whose {channels} differ")
    masks = values[..., 0]
    if masks.dtype.kind == "f":  # as ImageJ writes them
        if not (np.isfinite(masks).all() and (masks == np.rint(masks)).all()):
            raise _no_mask(path, "with values that are no whole numbers")
        masks = masks.astype(np.int64)
    return masks if stack == "samples" else masks[0]


def _no_mask(path: Path, received: str) -> UserError:
    return UserError(
        "masks of one channel: class indices, or 0 and 255",
        f"{path}, {received}",
        "Say which colour is which class (`colours` under [data]), or save each mask as a grey or palette "
        "PNG that holds the number of the class at each pixel.",
    )


def _without_alpha(values: Array, channels: int) -> Pixels:
    alpha = values[..., channels:]
    opaque = np.iinfo(alpha.dtype).max if alpha.dtype.kind in "iu" else 1
    return Pixels(values[..., :channels], bool(alpha.size and (alpha != opaque).any()))


def _is_deep_tiff(path: Path) -> bool:
    """Whether a file is a TIFF that Pillow cannot read, or not without loss."""
    with refusing(path):
        if not tiff.is_tiff(path):
            return False
        try:
            with Image.open(path, formats=("TIFF",)) as picture:
                return not tiff.is_plain(picture)
        except Exception:  # too large for Pillow, or of an unknown mode
            return True


def _is_deep_png(picture: Image.Image) -> bool:
    return picture.format == "PNG" and picture.mode in DEEP_PNG_MODES and _bits(picture) == 16


# Properties that Pillow does not report for an open image: how its pixels are stored, and its orientation.


def _upright(picture: Image.Image) -> Image.Image:
    """Apply the EXIF orientation; Pillow does this for TIFFs when it loads them."""
    return picture if picture.format == "TIFF" else ImageOps.exif_transpose(picture)


def _stored(picture: Image.Image) -> tuple[Size, int]:
    """Return the stored height and width, and the EXIF orientation (1 to 8; default 1)."""
    if picture.format == "TIFF":
        tags = picture.tag_v2  # type: ignore[attr-defined]
        size, orientation = (tags[_HEIGHT], tags[_WIDTH]), tags.get(_ORIENTATION, 1)
    else:
        size, orientation = picture.size[::-1], picture.getexif().get(_ORIENTATION, 1)
    return (int(size[0]), int(size[1])), orientation if orientation in range(1, 9) else 1


def _bits(picture: Image.Image) -> int:
    """Return the stored bits per channel: Pillow silently converts 16-bit colour to 8 bits."""
    if picture.format == "TIFF":
        depth = picture.tag_v2.get(_BITS, (8,))  # type: ignore[attr-defined]
        return int(max(depth) if isinstance(depth, tuple) else depth)
    if picture.mode in ("I", "F"):
        return 32
    return 16 if ";16" in _raw_mode(picture) or picture.mode.startswith("I;16") else 8


def _raw_mode(picture: Image.Image) -> str:
    """Return the mode in which the file stores its pixels, which may differ from Pillow's mode."""
    tiles = getattr(picture, "tile", None)
    if not tiles:
        return picture.mode
    args = tiles[0][3]
    return str(args[0]) if isinstance(args, tuple) and args else str(args)


def is_colour(picture: Image.Image) -> bool:
    """Whether an image has colours; a grey palette has none. Call it before Pillow loads the pixels."""
    if _raw_mode(picture).startswith("LA"):
        return False
    if picture.mode != "P":
        return picture.mode in COLOUR_MODES
    palette = np.asarray(picture.getpalette("RGB") or [], np.uint8).reshape(-1, 3)
    return not (palette == palette[:, :1]).all()


def _is_white_zero(picture: Image.Image) -> bool:
    """Whether a TIFF stores white as 0, for 16-bit images; Pillow inverts 8-bit images itself."""
    return picture.format == "TIFF" and picture.tag_v2.get(_PHOTOMETRIC) == 0  # type: ignore[attr-defined]


def _luma(picture: Image.Image) -> Array:
    return np.asarray(picture if picture.mode == "L" else picture.convert("L"))


def _is_see_through(picture: Image.Image) -> bool:
    if picture.mode in ("RGBA", "LA"):
        alpha = picture.getchannel("A")
    elif picture.mode == "PA" or "transparency" in picture.info:
        alpha = picture.convert("RGBA").getchannel("A")
    else:
        return False
    return int(alpha.getextrema()[0]) < 255  # type: ignore[arg-type]
