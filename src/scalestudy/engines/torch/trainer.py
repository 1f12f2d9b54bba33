"""One process's part of a run, computed with PyTorch."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from operator import itemgetter
from typing import Any, SupportsFloat

import keras
import numpy as np
import torch
from numpy.typing import NDArray

from scalestudy.config.point import Point
from scalestudy.data.samples import Call, Slice
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Joined
from scalestudy.engines.interface import DeviceMark
from scalestudy.engines.keras.arithmetic import explain_refusals
from scalestudy.engines.keras.inference import Evaluation
from scalestudy.engines.keras.layer_context import collecting
from scalestudy.engines.keras.phases import Phase, keep
from scalestudy.engines.keras.trainer import KerasTrainer
from scalestudy.engines.torch.group import TorchReplicas
from scalestudy.engines.torch.layers import adapt_model, batch_norms
from scalestudy.engines.torch.optimizers import StateDict, optimizer_of
from scalestudy.engines.torch.running_statistics import RunningStatistics
from scalestudy.engines.torch.shared_buffers import SharedBuffers
from scalestudy.engines.torch.state import TorchState, host_arrays
from scalestudy.engines.torch.step import (
    Step,
    WorkerLoss,
    scaled,
    stage,
    step_of,
)
from scalestudy.tasks.task import Task
from scalestudy.util.errors import UserError

START = 2.0**15
"""Initial scale of float16 losses (Micikevicius et al. 2018, arXiv:1710.03740)."""


class TorchTrainer(KerasTrainer[TorchState]):
    """Model and optimizer of one process, on `device`; see `Trainer` and `Engine.trainer`."""

    def __init__(
        self,
        point: Point,
        prepared: Prepared,
        rates: NDArray[np.float64],
        joined: Joined,
        device: str,
    ) -> None:
        assert isinstance(joined.replicas, TorchReplicas)
        self._replicas = joined.replicas
        self._device = torch.device(device)
        self._scale = prepared.scale
        self._point = point
        # bfloat16 has the exponents of float32, and needs no scale.
        mixed = point.train.precision == "mixed_float16"
        self._scaler = torch.amp.GradScaler(
            self._device.type,
            init_scale=START,
            enabled=mixed,
        )
        super().__init__(
            point,
            prepared,
            rates,
            joined.group,
            adapt=adapt_model,
            make=lambda task: partial(optimizer_of, point, task),
            make_state=partial(TorchState, joined.group, self._device),
            within=torch.no_grad(),
            extra=lambda: [StateDict(self._scaler)] if mixed else [],
        )
        # DistributedDataParallel shares parameters and buffers, but no state of optimizers.
        self.state.share()
        # Losses are summed in the type of the weights; float16 would overflow.
        self._dtype: torch.dtype = getattr(torch, keras.config.floatx())
        self._synchronised = point.train.sync_batch_norm and bool(self.state.local)
        self._copying: torch.cuda.Stream | None = None
        if self._device.type == "cuda":
            self._copying = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._shared = SharedBuffers(self.state.shared)
        # DistributedDataParallel fixes its buckets once, so each phase has a step of its own.
        self._steps = [self._step(phase) for phase in self._phases]
        self._evaluation = TorchEvaluation(self.task, scale=prepared.scale)

    def _step(self, phase: Phase) -> Step:
        task = self.task
        model = self.task.model
        variables = phase.variables
        call = model
        if self._point.train.compile:
            call = _compile(model)

        def losses(part: Slice) -> Any:
            # PyTorch's generators then give the same numbers after a resume, and to each worker others.
            self._seed(hash((self._point.seed, int(part.step), int(part.start))))
            inputs = scaled(part.inputs, self._scale, self._dtype)
            targets = part.targets
            if self._scale is None:
                targets = scaled(targets, None, self._dtype)
            with keep(model, phase.frozen):
                if task.training_losses is not None:
                    return task.training_losses(call, task.loss, inputs, targets)
                return task.loss(targets, call(inputs, training=True))

        def constrain() -> None:
            for variable in constrained:
                variable.assign(variable.constraint(variable))

        constrained = [
            variable for variable in variables if variable.constraint is not None
        ]
        norms: list[Any] = []
        if not self._synchronised:
            with keep(model, phase.frozen):  # frozen layers move nothing
                norms = batch_norms(model)
        loss = WorkerLoss(
            losses,
            lambda: model.losses,
            [variable.value for variable in variables],
            self._shared,
            self._replicas,
            self._dtype,
            synchronised=self._synchronised,
        )
        return Step(
            loss,
            phase.optimizer,
            self._replicas,
            self._point,
            scaler=self._scaler,
            statistics=RunningStatistics(norms, self._replicas.size),
            constrain=constrain,
            computed=lambda: self.computed(),  # noqa: PLW0108 (a session sets it later)
        )

    def _seed(self, seed: int) -> None:
        """Seed the generators of the CPU and of the own device.

        `torch.manual_seed` seeds those of all devices: without a GPU, it formats the stack each time, and for
        that asks the file system about each source file in it.
        """
        torch.default_generator.manual_seed(seed)
        if self._device.type == "cuda":
            torch.cuda.manual_seed(seed)

    @property
    def rate(self) -> float | None:
        if not self.optimizer.settable:
            return None
        rate: float = self.optimizer.learning_rate
        return rate

    def stage(self, part: Slice, device: int) -> Slice:
        return stage(part, self._device, self._copying)

    def train(self, call: Call) -> SupportsFloat:
        self.enter(call[0].step)
        part = stage(call[0], self._device, self._copying)
        step = self._steps[self._phase]
        with explain_refusals(self._phases[self._phase].variables):
            losses: SupportsFloat = sum(
                step(step_of(part, index)) for index in range(part.steps)
            )
        return losses

    @torch.no_grad()
    def statistics(self, call: Call) -> list[Any]:
        part = self.stage(call[0], 0).mapped(itemgetter(0))
        model = self.task.model
        inputs = scaled(part.inputs, self._scale, self._dtype)
        with keep(model, self._phases[self._phase].frozen), collecting() as moments:
            model(inputs, training=False)
        return [
            value * float(part.count > 0) for value in moments.sums(self.state.norms)
        ]

    def mark(self) -> DeviceMark | None:
        if self._device.type != "cuda":
            return None
        return CudaMark(self._device)

    def evaluate(self, call: Call) -> list[Any]:
        with explain_refusals():
            return super().evaluate((self.stage(call[0], 0),))

    def arrays(self, sums: Sequence[Any]) -> list[NDArray[np.float64]]:
        return host_arrays(sums)


class CudaMark:
    """A CUDA event recorded now; see `DeviceMark`."""

    def __init__(self, device: torch.device) -> None:
        events: Any = torch.cuda.Event
        # Waiting without `blocking` would keep the core busy that the loader needs.
        self.event = events(enable_timing=True, blocking=True)
        self.event.record(torch.cuda.current_stream(device))

    def wait(self) -> None:
        self.event.synchronize()

    def seconds_since(self, earlier: "CudaMark") -> float:
        return float(earlier.event.elapsed_time(self.event)) / 1e3


class TorchEvaluation(Evaluation):
    """See `Evaluation`. `scale` maps stored inputs to [0, 1]; with None inputs are not scaled."""

    def __init__(self, task: Task, *, scale: float | None) -> None:
        super().__init__(task)
        self._scale = scale
        self._floatx: torch.dtype = getattr(torch, keras.config.floatx())
        self._starts = {
            name: super(TorchEvaluation, self).start(name) for name in task.metrics
        }

    @torch.no_grad()
    def sums(self, call: Call) -> list[Any]:
        part = call[0].mapped(itemgetter(0))
        targets = part.targets
        if self._scale is None:
            targets = scaled(targets, None, self._floatx)
        added = self.added(scaled(part.inputs, self._scale, self._floatx), targets)
        # A slice without samples holds one row of weight 0.
        total, *states = (tensor * float(part.count > 0) for tensor in added)
        return [total, total.new_full((), part.count), *states]

    def _filled(
        self, states: Sequence[NDArray[np.float64]]
    ) -> Iterator[tuple[str, keras.Metric]]:
        """Yield the metrics as `Evaluation`, with their sums on the host, where results need no more copies.

        A metric of a task file may hold tensors on the device, so its result is computed there.
        """
        remaining = iter(states)
        for name, metric in self._task.metrics.items():
            place: AbstractContextManager[Any] = nullcontext()
            if type(metric).__module__.startswith(("keras.", "scalestudy.")):
                place = keras.device("cpu")
            with place:
                values = []
                starts = self._start[name]
                for variable, start in zip(metric.variables, starts, strict=True):
                    total = start + next(remaining)
                    tensor = keras.ops.convert_to_tensor(total, variable.dtype)
                    values.append((variable, tensor))
                with keras.StatelessScope(state_mapping=values):
                    yield name, metric

    def start(self, metric: str) -> list[Any]:
        return self._starts[metric]  # a copy to a GPU would wait for it

    @torch.no_grad()
    def constant(
        self,
        targets: Iterable[NDArray[Any]],
        answer: NDArray[np.float64],
    ) -> float | None:
        return super().constant(targets, answer)


def _compile(model: Any) -> Any:
    if isinstance(model, keras.Model):
        raise UserError(
            "a PyTorch module, for train.compile",
            "a Keras model",
            "Remove compile, or return an nn.Module.",
        )
    return model.compiled()
