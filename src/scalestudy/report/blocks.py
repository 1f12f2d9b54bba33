"""A picture in a terminal: two pixels a character, one above the other, as half a block."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

if TYPE_CHECKING:
    from rich.text import Text

UPPER_HALF = "▀"


def blocks(pictures: list[npt.NDArray[Any]], width: int, gap: int = 2) -> "Text":
    """Pictures beside each other.

    Args:
        pictures: RGB, uint8 [h, w, 3].
        width: Characters of each.
        gap: Spaces between two.
    """
    from rich.color import Color
    from rich.style import Style
    from rich.text import Text

    scaled = [_scaled(each, width) for each in pictures]
    height = max(len(each) for each in scaled)
    text = Text()
    for row in range(0, height, 2):
        for number, each in enumerate(scaled):
            text.append(" " * gap if number else "")
            if row >= len(each):
                text.append(" " * width)
                continue
            for above, below in zip(each[row], each[row + 1], strict=True):
                style = Style(
                    color=Color.from_rgb(*map(int, above)), bgcolor=Color.from_rgb(*map(int, below))
                )
                text.append(UPPER_HALF, style)
        text.append("\n")
    return text


def _scaled(picture: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    """The picture so many pixels wide, and an even number high."""
    height = max(1, round(picture.shape[0] * width / picture.shape[1] / 2)) * 2
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BOX))
