"""What every strategy offers to the loop: how workers combine, and nothing else."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Gradients = list[Any]


class Block(NamedTuple):
    """What one device computes in one step; tensors.

    Attributes:
        inputs: Shape [b, H, W, C], as stored.
        targets: Shape [b, ...].
        start: Position of its first sample in the global batch (int64).
        count: Samples that are real: b, or 0 for a row that stands in for an empty slice (int64).
        total: Samples of the global batch (int64).
        step: Step of the run, from 0 (int64).
        first: Whether this is the step's first use of the variables (bool).
    """

    inputs: Any
    targets: Any
    start: Any
    count: Any
    total: Any
    step: Any
    first: Any


Gradient = Callable[[Block], tuple[Gradients, Any]]
"""block -> gradients of (sum of its losses / total), and the sum of its losses."""


class LossScaling(NamedTuple):
    """How a strategy leaves out a step whose float16 gradients overflowed, on all workers alike.

    Attributes:
        overflow: gradients -> 1.0 if one is not finite, else 0.0.
        guard: (overflows of all workers, update) -> calls update or leaves it out.
    """

    overflow: Callable[[Gradients], Any]
    guard: Callable[[Any, Callable[[], None]], None]


class Strategy:
    """One process's part in combining workers. The default is one worker alone.

    Args:
        workers: Workers of the run.
        sync_batch_norm: Whether batch normalisation spans the workers.
    """

    name = "single"

    def __init__(self, workers: int, *, sync_batch_norm: bool) -> None:
        self.workers, self.sync_batch_norm = workers, sync_batch_norm

    @property
    def rank(self) -> int:
        """Rank of this process; rank 0 writes."""
        return 0

    @property
    def processes(self) -> int:
        """Processes of the run."""
        return 1

    @property
    def replicas(self) -> int:
        """Copies of the model among all processes."""
        return 1

    def slices(self) -> list[tuple[int, int]]:
        """For each device of this process, the workers (first, beyond the last) it computes."""
        return [(0, self.workers)]

    def scope(self) -> AbstractContextManager[Any]:
        """Where the model and the optimizer are made."""
        return nullcontext()

    def step(
        self,
        gradient: Gradient,
        update: Callable[[Gradients], None],
        blocks: Sequence[Block],
        scaling: LossScaling | None,
    ) -> Any:
        """Compute one step on all workers and update the weights. Compiled.

        Args:
            gradient: What a worker computes.
            update: Applies gradients, summed over all workers.
            blocks: One per device of this process.
            scaling: For float16, otherwise None.

        Returns:
            The sum of losses over the workers of this process.
        """
        gradients, losses = self.worker_sums(gradient, blocks[0])
        self.apply(gradients, update, scaling)
        return losses

    def worker_sums(self, gradient: Gradient, block: Block) -> tuple[Gradients, Any]:
        """Gradients and losses of one device's block, summed over the workers it computes."""
        return gradient(block)

    def apply(
        self, gradients: Gradients, update: Callable[[Gradients], None], scaling: LossScaling | None
    ) -> None:
        """Sum over processes and update the weights, unless an overflow forbids it."""
        if scaling is None:
            update(self.sum_gradients(gradients))
        else:
            overflows = self.sum_gradients([scaling.overflow(gradients)])[0]
            scaling.guard(overflows, lambda: update(self.sum_gradients(gradients)))

    def sum_gradients(self, gradients: Gradients) -> Gradients:
        """Gradients summed over the processes. Compiled."""
        return gradients

    def total(self, compute: Callable[[Any], Any], parts: Sequence[Any]) -> Any:
        """Sum over this process's devices of what `compute` makes of each one's part. Compiled."""
        return compute(parts[0])

    def sync_sum(self) -> Callable[[Any], Any] | None:
        """Differentiable sum over workers for synchronised batch normalisation, or None without it."""
        return (lambda tensor: tensor) if self.sync_batch_norm else None

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over processes of an array (float64 or int64), the same on every rank."""
        return values

    def tensor_sum(self, tensor: Any) -> Any:
        """Sum over processes of a tensor, where it lies, the same on every rank."""
        return tensor

    def parts(self, variable: Any) -> list[Any]:
        """The TensorFlow variable that stands for `variable` on each device of this process."""
        return [variable]

    def copies(self, variable: Any) -> list[NDArray[Any]]:
        """The values of a TensorFlow variable on each device of this process."""
        return [part.numpy() for part in self.parts(variable)]

    def average(self, variables: Sequence[Any]) -> None:
        """Set variables that each worker keeps for itself to their mean over all workers, everywhere."""
        if self.processes == 1 or not variables:
            return
        values = [variable.numpy() for variable in variables]
        flat = np.concatenate([value.ravel().astype(np.float64) for value in values])
        mean = self.host_sum(flat) / self.processes
        parts = np.split(mean, np.cumsum([value.size for value in values])[:-1])
        for variable, value, part in zip(variables, values, parts, strict=True):
            variable.assign(part.reshape(value.shape).astype(value.dtype))

    def broadcast(self, variables: Sequence[Any]) -> None:
        """Give every process the values of rank 0."""

    def close(self) -> None:
        """Leave the group of workers."""
