"""The training step: exact gradients of a global batch, for any division into slices."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import Any

import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from scalestudy.config.point import Point
from scalestudy.config.settings import LaunchSettings
from scalestudy.data.samples import Slice, leaves, map_columns
from scalestudy.engines.keras.layer_context import Working, working
from scalestudy.engines.torch.group import TorchReplicas
from scalestudy.engines.torch.optimizers import ScheduledOptimizer
from scalestudy.engines.torch.running_statistics import RunningStatistics
from scalestudy.engines.torch.shared_buffers import SharedBuffers

MIB = 2**20


def compression_hook(compression: str) -> Callable[..., Any]:
    """Return the communication hook of DistributedDataParallel for `launch.compression`: "fp16" or "bf16"."""
    if compression == "fp16":
        return default_hooks.fp16_compress_hook
    return bf16_hook


def bf16_hook(
    state: Any,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[torch.Tensor]:
    """Compress as `bf16_compress_hook`, which DistributedDataParallel refuses, by its name, without NCCL."""
    return default_hooks.bf16_compress_hook(state, bucket)


class WorkerLoss(nn.Module):
    """One worker's part of the loss of a global batch, in the form that DistributedDataParallel wraps.

    DistributedDataParallel averages gradients over processes. So that the result is the gradient of the mean
    over the *global* batch, for slices of any size, a worker differentiates (sum of its slice's losses) ·
    processes / (samples of the global batch).

    Args:
        losses: Slice -> losses of shape [B]; called with the worker as `keras.layer_context.current`.
        penalties: Returns the terms added to the mean of the losses; called after `losses`.
        parameters: Parameters for which gradients are computed.
        shared: Variables that every process takes from rank 0 before each step.
        replicas: The workers.
        dtype: Type in which losses are summed.
        synchronised: Whether layers sum over all workers.
    """

    def __init__(
        self,
        losses: Callable[[Slice], Any],
        penalties: Callable[[], Iterable[Any]],
        parameters: Sequence[Any],
        shared: SharedBuffers,
        replicas: TorchReplicas,
        dtype: torch.dtype,
        *,
        synchronised: bool,
    ) -> None:
        super().__init__()
        self._losses = losses
        self._penalties = penalties
        self._dtype = dtype
        self._trained = nn.ParameterList(parameters)
        self.shared = shared
        self._processes = replicas.size
        self.synchronised = synchronised
        self._sync_sum: Callable[[Any], Any] | None = None
        if synchronised and replicas.size > 1:
            self._sync_sum = replicas.sync_sum

    def forward(self, part: Slice) -> tuple[Any, Any]:
        """Return the objective that a worker differentiates, and the sum of its losses (float64)."""
        share = self._processes * part.count / part.total
        with working(Working(part, share, self._sync_sum, Counter())):
            losses = self._losses(part)
        # A worker without samples computes one row of weight 0: DistributedDataParallel waits for the
        # gradients of every worker.
        total = losses.to(self._dtype).sum() * float(part.count > 0)
        # Divided by the samples of the global batch, and multiplied by the processes over which
        # DistributedDataParallel averages.
        objective = total * (self._processes / part.total)
        # A penalty counts once per global batch, divided among workers by samples.
        for penalty in self._penalties():
            objective = objective + penalty * share
        return objective, total.detach().double()

    def named_buffers(self, *args: Any, **options: Any) -> Iterator[tuple[str, Any]]:
        """Yield the present tensors of the buffers, which a user's module may have replaced."""
        for index, variable in enumerate(self.shared.variables):
            yield f"{index}", variable.value


class Step:
    """Computes a step on the workers of this process and updates the weights.

    Args:
        loss: Computes a worker's objective.
        optimizer: The optimizer.
        replicas: The workers.
        point: The point of the run.
        scaler: Scales float16 losses; disabled for other types.
        statistics: The running statistics of batch normalisation in a PyTorch module.
        constrain: Applies the constraints of Keras's variables after the update.
        computed: Called before gradients are exchanged.
    """

    def __init__(
        self,
        loss: WorkerLoss,
        optimizer: ScheduledOptimizer,
        replicas: TorchReplicas,
        point: Point,
        *,
        scaler: torch.amp.GradScaler,
        statistics: RunningStatistics,
        constrain: Callable[[], None],
        computed: Callable[[], None],
    ) -> None:
        train = point.train
        launch = point.launch
        self._loss: Any = loss
        self._parameters = list(loss.parameters())
        self._shared = loss.shared
        self._together = loss.synchronised
        self._optimizer = optimizer
        self._replicas = replicas
        self._scaler = scaler
        self._statistics = statistics
        self._constrain = constrain
        self._computed = computed
        self._clip_norm = train.clip_norm
        self._accumulate = train.accumulate
        if replicas.exchanges:
            # Gradients are views of the buckets, so that no copy stands between back-propagation and sum.
            self._loss = DistributedDataParallel(
                loss,
                gradient_as_bucket_view=True,
                bucket_cap_mb=self._bucket(launch),
                # A search through the graph in each step, which only models with unused branches need.
                find_unused_parameters=train.find_unused_parameters,
            )
            if launch.compression != "none":
                hook = compression_hook(launch.compression)
                self._loss.register_comm_hook(None, hook)

    def _bucket(self, launch: LaunchSettings) -> Any:
        """Return the size of a bucket in MiB; None for PyTorch's: a first one of 1 MiB, then of 25 MiB."""
        if launch.bucket_size == "auto":
            return None
        size = sum(parameter.nbytes for parameter in self._parameters)
        # Compiled modules accept no bucket below 1 MiB. One that is not full is as good as a smaller one.
        return (launch.bucket_bytes or max(size, MIB)) / MIB

    def __call__(self, part: Slice) -> Any:
        """Compute the step of a slice of tensors. Return the sum of its losses, a float64 tensor."""
        # Layers that sum over all workers need them at once; others are computed one after another, in the
        # memory of one.
        number = 1
        if not self._together:
            first, beyond = self._replicas.slices[0]
            number = beyond - first
        workers = slices_of(part, number)
        in_turn = len(workers) > 1 and bool(self._shared.variables)
        self._optimizer.begin(part.step)
        self._statistics.begin(part, len(workers) * self._accumulate)
        if in_turn:
            self._shared.begin()
        total: Any = 0.0
        for worker in workers:
            micro_batches = slices_of(worker, self._accumulate)
            for micro_batch in micro_batches:
                last = worker is workers[-1] and micro_batch is micro_batches[-1]
                total = total + self._backward(micro_batch, last=last)
                self._statistics.add(micro_batch)
            if in_turn:
                self._shared.next_worker()
        if in_turn:
            self._shared.end()
        self._statistics.end()
        self._update()
        return total

    def _backward(self, part: Slice, *, last: bool) -> Any:
        """Add the gradients of a slice; in the `last` one, sum them over processes."""
        apart: AbstractContextManager[None] = nullcontext()
        if not last and isinstance(self._loss, DistributedDataParallel):
            # Earlier slices only add up: exchanging each of them would cost as much as the last.
            apart = self._loss.no_sync()
        with apart:
            objective, total = self._loss(part)
            # Marked before the backward pass, in which the first buckets already wait for the other ranks.
            if last:
                self._computed()
            # Back-propagation starts the sum of each bucket as soon as its gradients are there.
            self._scaler.scale(objective).backward()
        return total

    def _update(self) -> None:
        if self._clip_norm is not None:
            if self._scaler.is_enabled():
                # The limit is one of true gradients, not of scaled ones.
                self._scaler.unscale_(self._optimizer.inner)
            nn.utils.clip_grad_norm_(self._parameters, self._clip_norm, foreach=True)
        # Leaves out the update if a summed gradient is not finite; all ranks see the same sum.
        self._scaler.step(self._optimizer.inner)
        self._scaler.update()
        # As in Keras, after the update.
        self._constrain()


def stage(part: Slice, device: torch.device, copying: Any = None) -> Slice:
    """Convert the arrays of a slice to tensors on `device`, and wait for the copy, if any.

    On a GPU the arrays are copied on the stream `copying`, during the computation of earlier steps. On CPUs,
    where there is no such stream, the tensors share the arrays' memory.
    """
    if torch.is_tensor(leaves(part.inputs)[0]):
        return part
    if copying is None:
        return part.mapped(lambda array: sent(array, device))
    # This thread has a stream of its own for copies; steps are computed on the default one.
    computing = torch.cuda.current_stream(device)

    def copied(array: Any) -> Any:
        tensor = sent(array, device)
        # Its memory must not be reused before the computation is done, which is on another stream.
        tensor.record_stream(computing)
        return tensor

    with torch.cuda.stream(copying):
        staged = part.mapped(copied)
    # The arrays' memory is filled again as soon as nothing refers to them.
    copying.synchronize()
    return staged


def sent(array: NDArray[Any], device: torch.device) -> Any:
    """Return an array as a tensor on `device`, without waiting for the work that a GPU still has to do."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        # As by the DataLoader: a copy from pageable memory waits.
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def step_of(part: Slice, index: int) -> Slice:
    """Return the slice of step `index` of a call."""
    return part.mapped(itemgetter(index), step=part.step + index)


def slices_of(part: Slice, parts: int) -> list[Slice]:
    """Split a slice into parts that are computed in turn; their sizes differ by at most one row."""
    if parts == 1:
        return [part]
    slices = []
    for index in range(parts):
        start = index * part.count // parts
        stop = (index + 1) * part.count // parts
        # An empty part has one row, with weight 0.
        begin = min(start, max(part.count, 1) - 1)
        rows = slice(begin, begin + max(stop - start, 1))
        slices.append(
            part.mapped(
                itemgetter(rows),
                start=part.start + start,
                count=stop - start,
                first=part.first and index == 0,
            )
        )
    return slices


def scaled(inputs: Any, scale: float | None, dtype: torch.dtype) -> Any:
    """Scale stored integers to [0, 1] in `dtype`. If `scale` is None, only cast floating-point tensors."""

    def converted(stored: Any) -> Any:
        if scale is not None:
            return stored.to(dtype) * scale
        if stored.is_floating_point():
            return stored.to(dtype)
        return stored

    return map_columns(converted, inputs)
