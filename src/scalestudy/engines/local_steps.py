"""Local SGD: each worker updates its own weights, which are averaged at intervals."""

from typing import Any, NamedTuple

from scalestudy.config.point import Point
from scalestudy.util.errors import UserError


class LocalSteps(NamedTuple):
    """When workers set their weights to the mean over workers (Stich 2019, arXiv:1805.09767).

    Between averages, a worker's gradient is its part of the gradient of the global batch, times the number
    of workers. So each sample of an uneven batch has the same weight on every worker, and averaging after
    every step equals SGD, with or without momentum, on summed gradients. The state of the optimizer
    (momentum) is not averaged, as in PyTorch's PostLocalSGDOptimizer.

    Attributes:
        every: Steps between two averages.
        epoch: Steps of an epoch. The weights are always averaged after it, so evaluation changes nothing.
    """

    every: int
    epoch: int

    def due(self, step: Any) -> Any:
        """Return whether to average after `step` of the run, from 0: a number, or a scalar tensor."""
        done = step % self.epoch + 1
        return (done % self.every == 0) | (done == self.epoch)


def local_steps_of(point: Point, steps: int, *, callbacks: bool, gradients: bool) -> LocalSteps | None:
    """Return when a run averages weights, or None if it sums gradients in each step.

    Args:
        point: The point of the run.
        steps: Steps of the run.
        callbacks: Whether the task has callbacks.
        gradients: Whether the task changes the gradients summed over workers.

    Raises:
        UserError: If the task needs equal weights or gradients on all workers within an epoch.
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
