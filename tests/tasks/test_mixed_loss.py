"""The loss of mixed samples."""

import numpy as np
import pytest

from scalestudy.data.loading.augment.reader import FIRST, SECOND, SHARE

pytestmark = pytest.mark.engine


def test_the_loss_of_mixed_samples_is_that_of_both_by_their_shares(framework):
    from scalestudy.tasks.base import Task
    from scalestudy.tasks.losses import with_mixed_loss

    task = Task(None, lambda targets, outputs: (targets - outputs) ** 2, {}, {})
    targets = {FIRST: np.array([1.0, 2.0]), SECOND: np.array([3.0, 5.0]), SHARE: np.array([0.25, 1.0])}
    mixed = with_mixed_loss(task, "mixup", masks=True)
    assert np.asarray(mixed.loss(targets, np.zeros(2))).tolist() == [0.25 * 1 + 0.75 * 9, 4]
    assert with_mixed_loss(task, "flip", masks=True) is task
    assert with_mixed_loss(task, "cutmix", masks=True) is task  # the masks contain its boxes
