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


SKY, ROAD, VOID = (128, 128, 128), (128, 64, 128), (0, 0, 0)
KEY = {"road": "#804080", "sky": "#808080", "ignore": "#000000"}


@pytest.fixture
def street(mask_folder, save):
    """Four images with masks of road above and sky below; the first mask has a pixel without a class."""
    root = mask_folder()
    for number in range(4):
        mask = np.full((6, 8, 3), SKY, np.uint8)
        mask[:3] = ROAD
        mask[0, 0] = VOID if number == 0 else ROAD
        save(root / "masks" / f"s{number}.png", mask)
    return root


def test_colours_of_the_study_file_are_classes_in_their_order(street, ready):
    prepared = ready(street, colours=KEY)
    assert prepared.class_names == ("road", "sky")
    assert prepared.targets[0, 0, :2].tolist() == [255, 0]
    assert prepared.targets[3, 3:].all()
    assert prepared.ignore == 255
    assert "masks of the 2 `colours`" in prepared.understood


@pytest.mark.parametrize(
    ("colours", "told"),
    [
        ({"a": "#000000", "b": "#000000"}, "'a' and 'b'"),
        ({"a": "#000000", "ignore": "#ffffff"}, "1 in"),
        (
            {"road": "#804080", "sky": "#808080"},
            "masks/s0.png with 1 others, most often #000000 (1 pixels)",
        ),
    ],
)
def test_colours_that_name_no_class_for_a_pixel_or_one_for_two_are_refused(street, refusal, colours, told):
    assert told in refusal(street, colours=colours).received


def test_without_a_table_masks_of_colours_are_refused_naming_the_key(street, refusal):
    error = refusal(street)
    assert "red, green and blue differ" in error.received and "`colours`" in error.action


def test_grey_values_are_colours_too(mask_folder, ready, save):
    root = mask_folder()
    mask = np.zeros((6, 8), np.uint8)
    mask[0], mask[1] = 128, 255
    save(root / "masks" / "s0.png", mask)
    prepared = ready(root, colours={"background": "#000000", "edge": "#808080", "cell": "#ffffff"})
    assert prepared.targets[0, :3, 0].tolist() == [1, 2, 0]
    assert prepared.targets[1, :3, 0].tolist() == [2, 2, 0]
