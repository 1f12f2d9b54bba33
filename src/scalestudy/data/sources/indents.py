"""The source "indents": synthetic micrographs of an indent in a polished surface, with masks.

They serve studies without own data.
"""

from collections.abc import Iterator

import numpy as np

from scalestudy.config.settings import DataSettings
from scalestudy.data.samples import Kind, Sample
from scalestudy.data.sources.micrograph import VERSION, make_micrograph
from scalestudy.data.sources.source import (
    OF_FILES,
    Contents,
    digest,
    refuse_unused,
    side_by_side,
)
from scalestudy.util.errors import UserError

DEFAULT_COUNT = 240
DEFAULT_SIZE = (768, 1024)
LEAST_SIZE = 16


class Indents:
    """Source of synthetic micrographs, each with a triangular indent: "indents" or "indents:COUNT"."""

    kind: Kind = "masks"
    label = "indents"

    def __init__(self, argument: str | None, data: DataSettings) -> None:
        # One image to train on and one to validate on are the least that a split can divide.
        if argument is not None and (not argument.isdecimal() or int(argument) < 2):
            raise UserError(
                '"indents:COUNT" with a count of at least 2',
                f"'indents:{argument}'",
                'Write "indents:240".',
            )
        self._count = DEFAULT_COUNT
        if argument is not None:
            self._count = int(argument)
        self._size = data.image_size or DEFAULT_SIZE
        self._seed = data.seed
        refuse_unused(data, OF_FILES, "indents, which are synthetic")
        if min(self._size) < LEAST_SIZE:
            raise UserError(
                f"an image_size of at least {LEAST_SIZE} x {LEAST_SIZE} pixels for indents",
                f"{self._size[0]} x {self._size[1]}",
                "Choose a larger `image_size` under [data].",
            )
        self.known_classes = len(self.class_names())
        self.identity = f"indents:{self._count}"
        # All that the images depend on: a set is prepared anew if one of these changes.
        self.fingerprint = digest(
            "indents",
            VERSION,
            self._count,
            self._size,
            data.seed,
        )

    def contents(self) -> Contents:
        return Contents(
            count=self._count,
            input_shape=(*self._size, 1),
            dtype=np.dtype(np.uint8),
            scale=1 / 255,
            names=None,
            given={},
        )

    def rows(self) -> Iterator[Sample]:
        return side_by_side(self._row, range(self._count))

    def class_names(self) -> list[str]:
        return ["background", "indent"]

    def _row(self, index: int) -> Sample:
        image, mask = make_micrograph(self._seed, index, self._size)
        # Images have an axis of channels, masks have none.
        return image[:, :, None], mask
