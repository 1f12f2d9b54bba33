"""The digits that scikit-learn ships, as they are."""

import numpy as np


def test_the_digits_keep_their_17_levels(ready):
    digits = ready("digits")
    assert (digits.count, digits.input_shape, digits.classes) == (1797, (8, 8, 1), 10)
    assert digits.inputs.dtype == np.uint8
    assert digits.inputs[:].max() == 16
    assert digits.scale == 1 / 16
    assert np.bincount(digits.targets).min() > 170
    assert digits.names[7] == "7"


def test_they_can_be_enlarged(ready):
    assert ready("digits", image_size=(16, 24)).input_shape == (16, 24, 1)
