"""Open one image file, and say what is wrong with it where that fails."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from scalestudy.util.errors import UserError

# What is wrong with a file is said in a refusal, or it can be read.
warnings.filterwarnings("ignore", "Corrupt EXIF data", UserWarning)
# Pillow warns from half of the size on that it refuses.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP")
"""What a file may be by its content, whatever its name."""
EMPTY = "an empty file"
NO_IMAGE = "no image inside of a format that is read"
TRUNCATED = "truncated"
BROKEN = "broken"


class DamagedFile(UserError):
    """A file that is no image, or not a whole one.

    Attributes:
        path: The file.
        reason: The kind of damage.
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
    """The image, until the block ends; what its decoder raises within the block is named too.

    Raises:
        UserError: it is missing, may not be read, is too large, or is damaged.
    """
    # Only these readers: Pillow has others that start programs, and what they read is not what was meant.
    with refusing(path), Image.open(path, formats=_FORMATS) as picture:
        yield picture


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Name the file in whatever a decoder raises within the block.

    Raises:
        UserError: it is missing, may not be read, is too large, or is damaged.
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
    except Exception as error:  # Pillow's decoders raise many kinds: OSError, SyntaxError, struct.error, ...
        raise DamagedFile(path, *_fault(path, error)) from error


def _fault(path: Path, error: Exception) -> tuple[str, str]:
    """The kind of damage, and what its decoder says."""
    message = str(error).replace(f" '{path}'", "") or type(error).__name__
    if path.stat().st_size == 0:
        return EMPTY, EMPTY
    if isinstance(error, UnidentifiedImageError):
        return NO_IMAGE, NO_IMAGE
    return (TRUNCATED if "truncated" in message.lower() else BROKEN), message
