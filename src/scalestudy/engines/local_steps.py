"""Local SGD: workers that update weights of their own, and when these are averaged."""

from typing import Any, NamedTuple

from scalestudy.study.point import Point
from scalestudy.util.errors import UserError


class LocalSteps(NamedTuple):
    """When workers set their weights to the mean of all (Stich 2019, arXiv:1805.09767).

    In between, each one's gradient is its part of the gradient of the global batch, times the number of
    workers: no sample of an uneven batch weighs more on one worker than on another, and averages after each
    step are SGD, with or without momentum, by summed gradients. What optimizers keep (momentum) stays with
    its worker, as in PyTorch's PostLocalSGDOptimizer.

    Attributes:
        every: Steps between two averages.
        epoch: Steps of an epoch, after which there is one in any case: evaluation changes nothing.
    """

    every: int
    epoch: int

    def due(self, step: Any) -> Any:
        """Whether weights are averaged after `step` of the run, from 0: a number, or a scalar tensor."""
        done = step % self.epoch + 1
        return (done % self.every == 0) | (done == self.epoch)


def local_steps_of(point: Point, steps: int, *, callbacks: bool, gradients: bool) -> LocalSteps | None:
    """What a run of so many steps asks for; None where gradients are summed in each step.

    Args:
        point: What is run.
        steps: Of the run.
        callbacks: Whether the task has any.
        gradients: Whether the task changes gradients that are summed over workers.

    Raises:
        UserError: If the task needs what all workers have alike within an epoch.
    """
    if point.train.local_steps == 1 or point.workers == 1:
        return None
    for there, what in ((callbacks, "callbacks"), (gradients, "gradients(...)")):
        if there:
            raise UserError(
                "a task without callbacks and gradients(...) for train.local_steps, since each worker has "
                "its own weights and gradients",
                f"{what} in the task",
                f"Remove {what} from the task, or local_steps from the study.",
            )
    return LocalSteps(point.train.local_steps, steps // point.train.epochs)
