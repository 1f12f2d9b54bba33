"""The 1,797 handwritten digits of 8 x 8 pixels and 17 grey levels that scikit-learn ships.

E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998.
"""

from collections.abc import Iterator

import numpy as np

from scalestudy.data.images.resize import Fit
from scalestudy.data.sources.base import OF_FILES, Contents, digest, refuse_unused
from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import Sample
from scalestudy.study.settings import DataSettings
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
        from sklearn.datasets import load_digits

        digits = load_digits()
        for values, target in zip(digits.images, digits.target, strict=True):
            image = values.astype(np.uint8)[:, :, None]
            yield self._fit.image(image), int(target)

    def class_names(self) -> list[str]:
        return [str(digit) for digit in range(10)]
