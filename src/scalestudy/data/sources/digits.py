"""The 1,797 handwritten digits of 8 x 8 pixels and 17 grey levels in `digits.npz`.

They are the test set of E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998
(https://doi.org/10.24432/C50P49, CC BY 4.0), the same that scikit-learn ships.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from scalestudy.config.settings import DataSettings
from scalestudy.data.images.form import Fit
from scalestudy.data.sources.base import OF_FILES, Contents, digest, refuse_unused
from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import Sample
from scalestudy.util.errors import UserError


class Digits:
    """Source of the digits, with a class for each digit. Values 0..16 are stored unchanged."""

    kind: Kind = "classes"
    label = identity = "digits"
    fingerprint = digest("digits", 1)

    def __init__(self, argument: str | None, data: DataSettings) -> None:
        if argument is not None:
            raise UserError(
                '"digits" without a count, since the set is fixed', f'"digits:{argument}"', 'Write "digits".'
            )
        refuse_unused(data, OF_FILES, "digits, which are arrays")
        self._fit = Fit.of(data)

    def contents(self) -> Contents:
        size = self._fit.size or (8, 8)
        return Contents(1797, (*size, 1), np.dtype(np.uint8), 1 / 16, None, {})

    def rows(self) -> Iterator[Sample]:
        with np.load(Path(__file__).with_name("digits.npz")) as digits:
            images, classes = digits["images"], digits["classes"]
        for values, target in zip(images, classes, strict=True):
            yield self._fit.image(values[:, :, None]), int(target)

    def class_names(self) -> list[str]:
        return [str(digit) for digit in range(10)]
