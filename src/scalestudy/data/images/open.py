"""Open one image file, and explain errors of its decoder."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from scalestudy.util.errors import UserError

# Damaged files are refused with a message; other files can be read.
warnings.filterwarnings("ignore", "Corrupt EXIF data", UserWarning)
# Pillow warns from half of its size limit on.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP")
"""Formats that are read; the content of a file decides, not its name."""
EMPTY = "an empty file"
NO_IMAGE = "no image inside of a format that is read"
TRUNCATED = "truncated"
BROKEN = "broken"


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
def opened(path: Path) -> Iterator[Image.Image]:
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
        return EMPTY, EMPTY
    if isinstance(error, UnidentifiedImageError):
        return NO_IMAGE, NO_IMAGE
    return (TRUNCATED if "truncated" in message.lower() else BROKEN), message
