import numpy as np
import pytest

from scalestudy.data.loading.augment.mixing import mix, mixture, two_targets
from scalestudy.data.loading.augment.parameters import draw
from scalestudy.study.augmentation import parsed

ROWS, CANDIDATES = np.arange(500), np.arange(100, 140)


def mixed(text):
    (operation,) = parsed(text)
    return mixture(operation, draw([operation], 0, 0, ROWS)[operation.kind], CANDIDATES, (20, 30))


def test_others_are_training_samples_alone():
    assert set(mixed("mixup").others) == set(CANDIDATES)


def test_shares_follow_the_beta_distribution():
    shares = mixed("mixup(0.4)").shares
    # Beta(a, a) has mean 1/2 and variance 1 / (4 (2a + 1)).
    assert np.allclose([shares.mean(), shares.var()], [0.5, 1 / (4 * 1.8)], atol=0.03)


def test_a_box_covers_what_the_share_leaves():
    what = mixed("cutmix")
    assert what.boxes is not None
    for index in range(0, 500, 50):
        image, other = np.zeros((20, 30, 1), np.uint8), np.ones((20, 30, 1), np.uint8)
        mix(image, other, index, what)
        assert np.isclose(1 - image.mean(), what.shares[index])


def test_images_are_blended_by_their_share():
    what = mixed("mixup")
    image, other = np.full((20, 30, 1), 200, np.uint8), np.full((20, 30, 1), 100, np.uint8)
    mix(image, other, 5, what)
    assert np.abs(image - (100 + 100 * what.shares[5])).max() <= 0.5


@pytest.mark.parametrize(
    ("text", "masks", "two"),
    [("mixup", False, True), ("mixup", True, True), ("cutmix", False, True), ("cutmix", True, False),
     ("flip", False, False)],
)  # fmt: skip
def test_a_mask_takes_a_box_and_all_else_needs_two_targets(text, masks, two):
    assert two_targets(parsed(text), masks=masks) is two
