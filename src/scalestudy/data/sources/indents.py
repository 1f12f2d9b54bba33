"""The source "indents": synthetic micrographs, for a study that needs no data of its own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from scalestudy.data.sources.base import OF_FILES, Contents, digest, refuse_unused, side_by_side
from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import Sample
from scalestudy.hardware.memory import memory_limit
from scalestudy.study.settings import DataSettings
from scalestudy.util import units
from scalestudy.util.errors import UserError

DEFAULT_COUNT = 240
DEFAULT_SIZE = (768, 1024)
LEAST_SIZE = 16
_AT_WORK = 200
"""Bytes for each pixel of the few images that are drawn side by side."""
_VERSION = 3
"""Raised with every change of what is drawn, so that stored sets are made anew."""


class Indents:
    """Source of synthetic micrographs with a triangular indent each: "indents" or "indents:COUNT"."""

    kind: Kind = "masks"
    label = "indents"

    def __init__(self, argument: str | None, data: DataSettings) -> None:
        self._count = _count(argument)
        self._size = data.image_size or DEFAULT_SIZE
        self._seed = data.seed
        refuse_unused(data, OF_FILES, "indents, which are synthetic")
        if min(self._size) < LEAST_SIZE:
            raise UserError(
                f"an image_size of at least {LEAST_SIZE} x {LEAST_SIZE} pixels for indents",
                f"{self._size[0]} x {self._size[1]}",
                "Choose a larger `image_size` under [data].",
            )
        self._refuse_too_many(data)
        self.identity = f"indents:{self._count}"
        self.fingerprint = digest("indents", _VERSION, self._count, self._size, data.seed)

    def _refuse_too_many(self, data: DataSettings) -> None:
        """Refuse more than the disk takes, or than the memory takes at once, before anything is made."""
        pixels = self._size[0] * self._size[1]
        cache = Path(data.cache or ".").absolute()
        free = shutil.disk_usage(next(folder for folder in (cache, *cache.parents) if folder.exists())).free
        if _AT_WORK * pixels > memory_limit() or 2 * self._count * pixels > free:
            raise UserError(
                f"indents for {units.size(memory_limit())} of memory and {units.size(free)} of disk",
                f"{self._count:,} of {self._size[0]:,} x {self._size[1]:,} pixels",
                "Ask for fewer, or for a smaller `image_size` under [data].",
            )

    def contents(self) -> Contents:
        """Shape, depth and order of the samples, from headers alone."""
        return Contents(self._count, (*self._size, 1), np.dtype(np.uint8), 1 / 255, None, {})

    def rows(self) -> Iterator[Sample]:
        """All samples in order."""
        return side_by_side(self._row, range(self._count))

    def class_names(self) -> list[str]:
        """Names of the classes by index."""
        return ["background", "indent"]

    def _row(self, index: int) -> Sample:
        from scalestudy.data.sources.micrograph import make_micrograph

        image, mask = make_micrograph(self._seed, index, self._size)
        return image[:, :, None], mask


def _count(text: str | None) -> int:
    if text is None:
        return DEFAULT_COUNT
    if not text.isdecimal() or int(text) < 2:
        raise UserError(
            '"indents:COUNT" with a count of at least 2', f"'indents:{text}'", 'Write "indents:240".'
        )
    return int(text)
