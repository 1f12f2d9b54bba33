"""Samples changed on the device are those that NumPy changes."""

from types import SimpleNamespace

import numpy as np
import pytest

from scalestudy.data.loading.augment.reader import FIRST, SECOND, SHARE, Augmented, apply
from scalestudy.data.loading.loader import Loader
from scalestudy.data.loading.reader import Stored
from scalestudy.study.augmentation import KINDS, MIXING, parsed

pytestmark = pytest.mark.engine

ROWS, COLUMNS = np.indices((20, 28))
BRIGHT = [180 - 9 * np.hypot(ROWS - 8 - i, COLUMNS - 12 + i) for i in range(6)]
IMAGES = np.stack([np.stack([each.clip(10, 240), each[::-1].clip(20, 200)], -1) for each in BRIGHT]).astype(
    "u1"
)
MASKS = (IMAGES[..., 0] > 90).astype(np.uint8)
SCALE = 1 / 255
PREPARED = SimpleNamespace(inputs=IMAGES, kind="masks", scale=SCALE)


@pytest.fixture
def changed(framework):
    """The images and masks of a batch, changed on the device; and what was told to do so."""
    from scalestudy.engines.tensorflow.augment import Augmentation
    from scalestudy.engines.tensorflow.staging import tensors_of
    from scalestudy.engines.tensorflow.step import step_of

    def change(text):
        source = Augmented(
            Stored(IMAGES, MASKS), parsed(text), seed=4, scale=SCALE, candidates=np.arange(6), on_device=True
        )
        loader = Loader(source, slices=[(0, 1)], workers=1, global_batch=6)
        (part,) = tensors_of(loader.read(np.arange(6), [(0, 6)], epoch=1))
        ready = Augmentation(text, "device", PREPARED).ready(step_of(part, 0))
        return ready.inputs.numpy(), ready.targets, source.parameters(np.arange(6), 1)

    return change


@pytest.mark.parametrize(
    "text",
    [kind for kind in KINDS if kind not in (*MIXING, "noise")]
    + ['flip("both"), rotate90, rotate(90), crop, elastic(2, 4), contrast, brightness'],
)
def test_every_operation_is_the_same_on_the_device(changed, text):
    images, masks, what = changed(text)
    for index in range(6):
        image, mask = IMAGES[index].copy(), MASKS[index].copy()
        apply(image, [mask], index, what, SCALE)
        assert np.abs(images[index] - image * SCALE).max() <= 0.51 * SCALE  # which NumPy rounds
        assert (masks[index].numpy() == mask).mean() > 0.995  # a tie may fall to the other side
    assert np.abs(images - IMAGES * SCALE).max() > 0.05


def test_noise_has_its_deviation_and_is_a_samples_own(changed):
    images, masks, _ = changed("noise(0.05)")
    assert np.array_equal(masks.numpy(), MASKS)
    noise = images - IMAGES * SCALE
    assert np.isclose(noise.std(), 0.05, rtol=0.05)
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.1
    assert np.array_equal(images, changed("noise(0.05)")[0])


def test_both_masks_of_mixed_images_move_with_them(changed):
    _, targets, _ = changed('mixup, flip("vertical")')
    assert targets[SHARE].shape == (6,)
    for name in (FIRST, SECOND):
        assert set(np.unique(targets[name].numpy())) == {0, 1}
    upright = [bool(np.array_equal(targets[FIRST][i].numpy(), MASKS[i])) for i in range(6)]
    assert 0 < sum(upright) < 6


def test_the_loss_of_mixed_samples_is_that_of_both_by_their_shares(framework):
    from scalestudy.engines.tensorflow.augment import Augmentation
    from scalestudy.tasks.base import Task

    task = Task(None, lambda targets, outputs: (targets - outputs) ** 2, {}, {})
    targets = {FIRST: np.array([1.0, 2.0]), SECOND: np.array([3.0, 5.0]), SHARE: np.array([0.25, 1.0])}
    mixed = Augmentation("mixup", "loader", PREPARED).of_task(task)
    assert np.asarray(mixed.loss(targets, np.zeros(2))).tolist() == [0.25 * 1 + 0.75 * 9, 4]
    assert Augmentation("flip", "loader", PREPARED).of_task(task) is task
    assert Augmentation("cutmix", "loader", PREPARED).of_task(task) is task  # its boxes are in the masks
