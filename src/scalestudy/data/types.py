"""Types of samples, and the class index that is ignored."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Sample = tuple[Array, Array | int]
"""One sample: an input [H, W, C], and a mask [H, W] (uint8) or a class."""
Size = tuple[int, int]
"""Height and width in pixels."""
Ranges = dict[str, tuple[int, int]]
"""Rows (start, stop) of "train", "validation" and "test", as far as a source defines them."""

IGNORE = 255
"""Class index of ignored mask pixels, such as padding: losses and metrics leave them out."""
MOST_CLASSES = 255
"""Class indices of a mask are 0..254; 255 is ignored."""
