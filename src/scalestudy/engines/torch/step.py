"""The training step: exact gradients of a global batch, for any division into slices."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import torch

from scalestudy.data.columns import leaves, map_columns
from scalestudy.data.loading.slices import Slice
from scalestudy.engines.buckets import Buckets
from scalestudy.engines.context import Working, working
from scalestudy.engines.local_steps import LocalSteps
from scalestudy.engines.torch.exchange import Gradients
from scalestudy.engines.torch.group import TorchReplicas

GROW_AFTER = 2000
START = 2.0**15
WIRE = {"none": None, "fp16": torch.float16, "bf16": torch.bfloat16}
"""Type in which gradients are summed, by `launch.compression`; None for the type of the gradients."""


class TorchLossScale:
    """Dynamic loss scale, so that float16 gradients neither underflow nor overflow.

    The scale is halved if a gradient is not finite (the step is skipped), and doubled after 2,000 good steps
    (Micikevicius et al. 2018, arXiv:1710.03740). All of this happens on the device, without synchronization.

    Args:
        value: The scale, a scalar tensor.
        good: Good steps since the scale changed, a scalar tensor.
    """

    def __init__(self, value: Any, good: Any) -> None:
        self.value, self._good = value, good

    @torch.no_grad()
    def guard(self, gradients: Gradients, update: Callable[[], None], changed: Sequence[Any]) -> None:
        """Call `update`, which modifies the tensors `changed`; restore them if a gradient is not finite."""
        finite = gradients.finite()
        before = [tensor.clone() for tensor in changed]
        for flat in gradients.flat:
            flat.div_(self.value)
        update()
        for tensor, old in zip(changed, before, strict=True):
            tensor.copy_(torch.where(finite, tensor, old))
        good = torch.where(finite, self._good + 1, 0)
        full = good >= GROW_AFTER
        grown = torch.where(full, self.value * 2, self.value)
        self.value.copy_(torch.where(finite, grown, torch.clamp(self.value / 2, min=1.0)))
        self._good.copy_(torch.where(full, 0, good))


class Step:
    """Computes a step on the workers of this process and updates the weights.

    A worker's gradient is that of (sum of its slice's losses) / (samples of the *global* batch). Thus the sum
    over workers is the gradient of the global mean, for slices of any size.

    Args:
        losses: Slice -> losses of shape [B]; called with the worker as `engines.context.current`.
        parameters: Parameters for which gradients are computed.
        update: Receives the gradients, summed over all workers, in the order of the parameters.
        replicas: Sums gradients over the workers.
        buckets: Buckets in which gradients are summed over workers.
        dtype: Type in which losses are summed.
        penalties: Returns the terms added to the mean of the losses; called after `losses`.
        synchronised: Whether layers sum over all workers, so that workers cannot be computed in turn.
        loss_scale: For float16.
        changed: All tensors that `update` modifies; required with a loss scale.
        accumulate: Number of micro-batches in which each worker computes its slice.
        compression: Type in which gradients are summed over workers, as in `launch.compression`.
        local_steps: When workers average weights instead of summing gradients.
    """

    def __init__(
        self, losses: Callable[[Slice], Any], parameters: Sequence[Any],
        update: Callable[[list[Any]], None], replicas: TorchReplicas, *, buckets: Buckets, dtype: torch.dtype,
        penalties: Callable[[], Iterable[Any]] = tuple, synchronised: bool = False,
        loss_scale: TorchLossScale | None = None, changed: Sequence[Any] = (), accumulate: int = 1,
        compression: str = "none", local_steps: LocalSteps | None = None,
    ) -> None:  # fmt: skip
        self._losses, self._penalties, self._update = losses, penalties, update
        self._replicas, self._dtype, self._synchronised = replicas, dtype, synchronised
        self._loss_scale, self._changed = loss_scale, changed
        self._accumulate, self._local_steps = accumulate, local_steps
        start_sum = partial(replicas.start_sum, dtype=WIRE[compression])
        exchanges = replicas.exchanges and local_steps is None
        self.gradients = Gradients(parameters, buckets, start_sum if exchanges else None)

    def __call__(self, part: Slice) -> Any:
        """Compute the step of a slice of tensors. Return the sum of its losses, a float64 tensor."""
        first, beyond = self._replicas.slices[0]
        workers = slices_of(part, 1 if self._synchronised else beyond - first)
        slices = [micro_batch for worker in workers for micro_batch in slices_of(worker, self._accumulate)]
        self.gradients.begin()
        total: Any = 0.0
        for micro_batch in slices:
            objective, losses = self._objective(micro_batch)
            self.gradients.backward(objective, last=micro_batch is slices[-1])
            total = total + losses
        gradients = self.gradients.finish()
        with torch.no_grad():
            if self._local_steps is not None:
                self._update_alone(gradients, due=self._local_steps.due(part.step))
            elif self._loss_scale is None:
                self._update(gradients)
            else:
                self._loss_scale.guard(self.gradients, lambda: self._update(gradients), self._changed)
        return total

    def _update_alone(self, gradients: list[Any], *, due: bool) -> None:
        """Update this worker's own weights, then average them over workers if `due`."""
        for flat in self.gradients.flat:
            flat.mul_(self._replicas.workers)
        self._update(gradients)
        if due and self._replicas.exchanges:
            self.gradients.average_parameters(self._replicas.start_sum, self._replicas.workers)

    def _objective(self, part: Slice) -> tuple[Any, Any]:
        """Return the objective that a worker differentiates, and the sum of its losses."""
        size = self._replicas.size
        sync_sum = self._replicas.sync_sum if self._synchronised and size > 1 else None
        with working(Working(part, size * part.count / part.total, sync_sum, Counter())):
            losses = self._losses(part)
        total = losses.to(self._dtype).sum() * float(part.count > 0)
        objective = total / part.total
        for penalty in self._penalties():  # counted once per global batch, divided among workers by samples
            objective = objective + penalty * (part.count / part.total)
        if self._loss_scale is not None:
            objective = objective * self._loss_scale.value.detach()
        return objective, total.detach().double()


def stage(part: Slice, device: torch.device) -> Slice:
    """Convert the arrays of a slice to tensors on `device`, and wait for the copy, if any.

    On CPUs the tensors share the arrays' memory. On a GPU the arrays are copied on a separate stream, which
    overlaps with the computation of earlier steps.
    """
    if torch.is_tensor(leaves(part.inputs)[0]):
        return part
    if device.type == "cpu":
        return part._replace(
            inputs=map_columns(torch.from_numpy, part.inputs),
            targets=map_columns(torch.from_numpy, part.targets),
        )
    computing = torch.cuda.current_stream(device)
    copying = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def copied(array: Any) -> Any:
        tensor = torch.from_numpy(array).to(device, non_blocking=True)
        tensor.record_stream(computing)  # so that its memory is not reused before the computation is done
        return tensor

    with torch.cuda.stream(copying):
        staged = part._replace(
            inputs=map_columns(copied, part.inputs), targets=map_columns(copied, part.targets)
        )
    copying.synchronize()
    return staged


def step_of(part: Slice, index: int) -> Slice:
    """Return the slice of step `index` of a call."""
    return part._replace(
        inputs=map_columns(itemgetter(index), part.inputs),
        targets=map_columns(itemgetter(index), part.targets),
        step=part.step + index,
    )


def slices_of(part: Slice, parts: int) -> list[Slice]:
    """Split a slice into parts that are computed in turn; their sizes differ by at most one row."""
    if parts == 1:
        return [part]
    slices = []
    for index in range(parts):
        start, stop = index * part.count // parts, (index + 1) * part.count // parts
        begin = min(start, max(part.count, 1) - 1)
        rows = slice(begin, begin + max(stop - start, 1))  # an empty part has one row, with weight 0
        slices.append(
            part._replace(
                inputs=map_columns(itemgetter(rows), part.inputs),
                targets=map_columns(itemgetter(rows), part.targets),
                start=part.start + start, count=stop - start, first=part.first and index == 0,
            )
        )  # fmt: skip
    return slices


def scaled(inputs: Any, scale: float | None, dtype: torch.dtype) -> Any:
    """Scale stored integers to [0, 1] in `dtype`. If `scale` is None, only cast floating-point tensors."""
    if scale is None:
        return map_columns(lambda a: a.to(dtype) if a.is_floating_point() else a, inputs)
    return map_columns(lambda stored: stored.to(dtype) * scale, inputs)
