"""The reading of mask values is printed; ambiguous values are refused."""

import tomllib

import numpy as np
import pytest

from scalestudy.data.images.masks import MaskValues
from scalestudy.util.errors import UserError


def seen(*masks):
    values = MaskValues()
    indices = [
        values.indices(np.array([mask], np.uint8), f"{number}.png")
        for number, mask in enumerate(masks)
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
            "masks/s0.png with 1 others: #000000 (100.0%)",
        ),
    ],
)
def test_colours_that_name_no_class_for_a_pixel_or_one_for_two_are_refused(
    street, refusal, colours, told
):
    assert told in refusal(street, colours=colours).received


def test_without_a_table_masks_of_colours_are_refused_naming_the_key(street, refusal):
    error = refusal(street)
    assert (
        "masks/s0.png" in error.received and "`colours` under [data]" in error.expected
    )


def test_grey_values_are_colours_too(mask_folder, ready, save):
    root = mask_folder()
    mask = np.zeros((6, 8), np.uint8)
    mask[0], mask[1] = 128, 255
    save(root / "masks" / "s0.png", mask)
    prepared = ready(
        root, colours={"background": "#000000", "edge": "#808080", "cell": "#ffffff"}
    )
    assert prepared.targets[0, :3, 0].tolist() == [1, 2, 0]
    assert prepared.targets[1, :3, 0].tolist() == [2, 2, 0]


def test_colours_of_masks_are_listed_once_ready_to_paste(street, refusal, ready):
    error = refusal(street)
    assert (
        error.received.count("#804080 (49.5%)") == 1
        and "masks/s0.png" in error.received
    )
    line = 'colours = { class0 = "#808080", class1 = "#804080", class2 = "#000000" }'
    assert line in error.action
    pasted = tomllib.loads(line)["colours"]
    assert ready(street, colours=pasted).classes == 3


def test_colours_that_no_class_has_are_listed_once_for_all_masks(street, refusal, save):
    for number in range(4):
        mask = np.full((6, 8, 3), SKY, np.uint8)
        mask[0] = (0, 0, 10 * number)
        save(street / "masks" / f"s{number}.png", mask)
    error = refusal(street, colours={"road": "#804080", "sky": "#808080"})
    assert "s0.png and 3 more masks with 4 others" in error.received
    assert 'class2 = "#000000", class3 = "#00000a"' in error.action


def test_so_many_colours_that_they_are_no_classes_are_not_listed(
    mask_folder, refusal, save
):
    root, draw = mask_folder(), np.random.default_rng(0)
    for number in range(4):
        save(
            root / "masks" / f"s{number}.png",
            draw.integers(0, 256, (6, 8, 3), dtype=np.uint8),
        )
    assert "too many for classes" in refusal(root).action


def test_masks_that_number_objects_are_in_doubt():
    values, _ = seen(
        list(range(7)), list(range(4)), [0, 1, 2, 3, 4, 5, 0], list(range(9))
    )
    assert values.number_objects()


@pytest.mark.parametrize(
    "masks",
    [
        [list(range(7)), list(range(7)), list(range(7))],
        [list(range(7)), [0, 2, 5], [0, 1, 4], [0, 3, 6]],
        [[0, 1, 2], [0, 1], [0, 2], [0]],
        [[0, 1], [0, 2], [0, 3], [0, 4], [0, 5], [0, 6]],
        [[0, 255], [0, 0]],
    ],
)
def test_masks_of_classes_are_not(masks):
    values, _ = seen(*masks)
    assert not values.number_objects()


def test_more_object_numbers_than_classes_are_refused_with_what_to_save(
    mask_folder, refusal, save
):
    root = mask_folder()
    save(root / "masks" / "s0.png", np.arange(300, dtype=np.uint16).reshape(15, 20))
    save(root / "images" / "s0.png", np.zeros((15, 20), np.uint8))
    error = refusal(root, image_size=(6, 8))
    assert "numpy.where(mask > 0, 255, 0)" in error.action
