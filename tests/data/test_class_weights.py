"""Class weights from the frequencies of the training samples."""

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from few_digits import few_digits
from scalestudy.data.class_weights import class_counts, weights_of
from scalestudy.data.store.prepare import prepare
from scalestudy.util.errors import UserError


@pytest.fixture
def digits(tmp_path):
    return prepare(data_of(few_digits(tmp_path, 100), cache=tmp_path / "cache"))


def test_balanced_weights_are_scikit_learns_of_the_given_rows(digits):
    from sklearn.utils.class_weight import compute_class_weight

    rows = np.arange(10, 90)
    labels = np.asarray(digits.targets)[rows]
    expected = compute_class_weight("balanced", classes=np.arange(10), y=labels)
    found = weights_of("balanced", digits, rows)
    assert found == pytest.approx(expected)
    assert np.mean([found[label] for label in labels]) == pytest.approx(1)


def test_pixels_of_masks_are_counted_without_padding(tmp_path):
    for folder in ("images", "masks"):
        (tmp_path / "set" / folder).mkdir(parents=True)
    mask = np.zeros((10, 20), "uint8")
    mask[:2] = 255
    for number in range(3):
        Image.fromarray(np.full((10, 20), 100, "uint8")).save(tmp_path / f"set/images/{number}.png")
        Image.fromarray(mask).save(tmp_path / f"set/masks/{number}.png")
    ready = prepare(data_of(str(tmp_path / "set"), image_size=(20, 20), cache=tmp_path / "cache"))
    assert ready.ignore is not None
    assert class_counts(ready, np.array([2, 0])).tolist() == [320, 80]
    assert weights_of("balanced", ready, np.arange(3)) == pytest.approx((0.625, 2.5))


@pytest.mark.parametrize("asked", [(1.0, 2.0), (0.0,) * 10])
def test_weights_of_other_classes_or_none_above_0_are_refused(digits, asked):
    with pytest.raises(UserError, match=r"10 class weights.*\(0, 1, 2") as error:
        weights_of(asked, digits, np.arange(100))
    assert error.value.action == "Correct class_weights under [train]."


def test_a_class_that_does_not_occur_cannot_be_balanced(digits):
    rows = np.flatnonzero(np.asarray(digits.targets) != 3)
    with pytest.raises(UserError, match="none of 3") as error:
        weights_of("balanced", digits, rows)
    assert "class_weights = [1.0, 2.0]" in error.value.action
