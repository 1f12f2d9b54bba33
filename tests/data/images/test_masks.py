"""The reading of mask values is printed; ambiguous values are refused."""

import numpy as np
import pytest

from scalestudy.data.images.masks import MaskValues
from scalestudy.util.errors import UserError


def seen(*masks):
    values = MaskValues()
    indices = [
        values.indices(np.array([mask], np.uint8), f"{number}.png") for number, mask in enumerate(masks)
    ]
    return values, [each[0].tolist() for each in indices]


def test_255_beside_class_indices_counts_in_nothing():
    values, indices = seen([0, 1, 255], [0, 0, 255], [2, 1, 0])
    assert indices == [[0, 1, 255], [0, 0, 255], [2, 1, 0]]
    assert values.class_names() == ["0", "1", "2"]


def test_255_that_was_the_foreground_of_another_mask_is_in_doubt():
    with pytest.raises(UserError, match=r"1\.png with values 0, 1, 255") as refused:
        seen([0, 255, 0], [0, 1, 255])
    line = 'colours = { class0 = "#000000", class1 = "#010101", class2 = "#ffffff" }'
    assert line in refused.value.action


def test_values_with_gaps_are_refused_with_a_line_to_copy():
    values, _ = seen([0, 128, 255])
    with pytest.raises(UserError, match=r"0\.png with values 0, 128, 255") as refused:
        values.class_names()
    assert '#808080"' in refused.value.action
