"""The loss of training samples that the loader has mixed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import tensorflow as tf

from scalestudy.data.loading.augment.mixing import two_targets
from scalestudy.data.loading.augment.reader import FIRST, SECOND, SHARE
from scalestudy.study.augmentation import parsed
from scalestudy.tasks.base import Task
from scalestudy.util.errors import UserError


def with_mixed_loss(task: Task, augment: str, *, masks: bool) -> Task:
    """The task, with the loss of mixed samples where `augment` (as the study file says it) mixes any.

    Of two targets it is the sum of their losses by their shares: for losses that are linear in the target
    (cross-entropy) that of mixed targets (Zhang 2018, section 2), and defined for all.

    Raises:
        UserError: the task computes its training losses itself.
    """
    if not two_targets(parsed(augment), masks=masks):
        return task
    if task.training_losses is not None:
        raise UserError(
            "a task without training_losses for samples that are mixed (mixup, cutmix)",
            "one that computes its losses itself",
            "Mix the samples there, or remove it from train.augment.",
        )
    return replace(task, loss=_of_both(task.loss))


def _of_both(loss: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def of_both(targets: Any, outputs: Any) -> Any:
        first, second = loss(targets[FIRST], outputs), loss(targets[SECOND], outputs)
        share = tf.cast(targets[SHARE], first.dtype)
        return share * first + (1 - share) * second

    return of_both
