"""Open one image file, and say what is wrong with it where that fails."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from scalestudy.errors import UserError

# Pillow warns from half of the size on that it refuses.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

_FORMATS = ("PNG", "JPEG", "TIFF")
"""What a file may be by its content, whatever its name."""


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
    except PermissionError as error:
        raise UserError(
            "images that you may read",
            f"{path}: {error.strerror}",
            "Change its permissions, or ask its owner to.",
        ) from error
    except FileNotFoundError as error:
        raise UserError(
            "images that stay where they are while they are read",
            f"{path}, which has gone since the folder was listed",
            "Let nothing change the data set meanwhile, and run again.",
        ) from error
    except Image.DecompressionBombError as error:
        raise UserError(
            f"images of at most {2 * (Image.MAX_IMAGE_PIXELS or 0):,} pixels",
            f"{path}, a larger one (or a damaged file that says so)",
            "Save it as TIFF, of which larger ones are read; cut it into tiles, or scale it down.",
        ) from error
    except Exception as error:  # Pillow's decoders raise many kinds: OSError, SyntaxError, struct.error, ...
        raise UserError(
            "images that can be read",
            f"{path}: {_fault(path, error)}",
            "Replace the file by an intact copy, or remove it (with its mask, if it has one).",
        ) from error


def _fault(path: Path, error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "not a PNG, JPEG or TIFF inside" if path.stat().st_size else "an empty file"
    return str(error).replace(f" '{path}'", "") or type(error).__name__
