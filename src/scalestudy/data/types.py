"""What a sample is: its arrays, its size, and the class that counts in nothing."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Sample = tuple[Array, Array | int]
"""One sample: its input [H, W, C], and its mask [H, W] (uint8) or its class."""
Size = tuple[int, int]
"""Height and width in pixels."""
Ranges = dict[str, tuple[int, int]]
"""Rows (start, stop) of "train", "validation" and "test", for as many of them as a source brings."""

IGNORE = 255
"""Class index of the padding of a mask: neither trained on nor counted."""
MOST_CLASSES = 255
"""Class indices of a mask are 0..254, since 255 is padding."""
