"""The base of trainers of Keras models, for every backend of Keras, and a task's callbacks."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Generic, TypeVar

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.config.metric_senses import Sense
from scalestudy.config.point import Point
from scalestudy.data.samples import Call
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Group
from scalestudy.engines.interface import DeviceMark, Flops
from scalestudy.engines.keras.inference import Evaluation
from scalestudy.engines.keras.phases import (
    MakeOptimizer,
    bucket_gradients,
    flops_of,
    phases_of,
)
from scalestudy.engines.keras.private import settable_rate
from scalestudy.engines.keras.saving import KerasModelFile
from scalestudy.engines.keras.state import KerasState
from scalestudy.tasks.load import load_task
from scalestudy.tasks.task import DataInfo, Task

WATCHING = (
    keras.callbacks.EarlyStopping,
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.ReduceLROnPlateau,
)
"""Keras's callbacks that watch a metric."""
State = TypeVar("State", bound=KerasState)


class KerasTrainer(Generic[State]):
    """Model and optimizers of one process; see `Trainer`.

    Attributes:
        task: The task, with layers adapted to several workers.

    Args:
        point: The point of the run.
        prepared: The data set.
        rates: Learning rate of each step of the run, shape [steps].
        group: The processes.
        adapt: (model, seed, sync_batch_norm) -> names. Replaces layers whose behaviour would depend on the
            number of workers, and returns the names of layers whose noise still does.
        make: Makes the optimizer of each phase.
        make_state: (model, variables of optimizers and others) -> the values that training changes.
        scope: Context in which model and optimizers are created.
        extra: Creates further variables that training changes, in that scope.
        halves: Whether to exchange gradients in two buckets of equal work.
        within: The argument `within` of `KerasInference`.
    """

    _evaluation: Evaluation

    def __init__(
        self,
        point: Point,
        prepared: Prepared,
        rates: NDArray[np.float64],
        group: Group,
        *,
        adapt: Callable[..., list[str]],
        make: Callable[[Task], MakeOptimizer],
        make_state: Callable[[Any, Sequence[Any]], State],
        scope: AbstractContextManager[Any] | None = None,
        extra: Callable[[], Sequence[keras.Variable]] = tuple,
        halves: bool = False,
        within: Callable[[Any], Any] = lambda call: call,
    ) -> None:
        train = point.train
        build = partial(
            load_task,
            point.task,
            DataInfo.of(prepared, point.class_weights),
            train,
        )
        with scope or nullcontext():
            self.task = task = build()
            apart = adapt(
                task.model,
                seed=point.seed,
                sync_batch_norm=train.sync_batch_norm,
            )
            others = list(extra())
            self._phases = phases_of(task, rates, point, make(task))
        if apart and point.workers > 1 and group.rank == 0:
            print(
                f"scalestudy: what these draw depends on the number of workers: {', '.join(apart)}"
            )
        self._phase = 0
        # Callbacks find the optimizer at the model.
        task.model.optimizer = self.optimizer
        variables: list[Any] = []
        for phase in self._phases:
            variables += phase.optimizer.variables
        self.state: State = make_state(task.model, [*variables, *others])
        self.file = KerasModelFile(
            point.task,
            prepared.input_shape,
            build,
            task.model,
            self.state,
            within,
        )
        # The session sets it; a trainer also works without one.
        self.computed: Callable[[], None] = lambda: None
        self.metrics: Sequence[str] = list(task.metrics)
        self.sense = task.sense
        limit = point.launch.bucket_bytes
        self._cuts = [
            bucket_gradients(task.model, phase.variables, limit, halves=halves)
            for phase in self._phases
        ]

    @property
    def phases(self) -> list[int]:
        return [phase.first for phase in self._phases]

    @property
    def optimizer(self) -> Any:
        """The optimizer of the current phase."""
        return self._phases[self._phase].optimizer

    @property
    def has_callbacks(self) -> bool:
        return bool(self.task.callbacks)

    @property
    def rate(self) -> float | None:
        settable = settable_rate(self.optimizer)
        if settable is None:
            return None
        return float(keras.ops.convert_to_numpy(settable.value))

    def enter(self, step: int) -> None:
        for index, phase in enumerate(self._phases):
            if phase.first <= step:
                self._phase = index
        self.task.model.optimizer = self.optimizer

    def set_rate(self, rate: float) -> None:
        self.optimizer.learning_rate = rate

    def mark(self) -> DeviceMark | None:
        return None

    def evaluate(self, call: Call) -> list[Any]:
        return self._evaluation.sums(call)

    def arrays(self, sums: Sequence[Any]) -> list[NDArray[np.float64]]:
        return list(sums)

    def results(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, float]:
        return self._evaluation.results(sums)

    def constant(
        self,
        targets: Iterable[NDArray[Any]],
        answer: NDArray[np.float64],
    ) -> float | None:
        return self._evaluation.constant(targets, answer)

    def callbacks(self, *, epochs: int, steps: int) -> keras.callbacks.CallbackList:
        """See `Trainer.callbacks`.

        Callbacks that monitor a metric with `mode="auto"` get the better direction from the task. Keras would
        look for it in a compiled model, and fail.
        """
        task = self.task
        modes = {"higher": "max", "lower": "min", None: "auto"}
        for callback in task.callbacks:
            if isinstance(callback, WATCHING) and callback.mode == "auto":
                metric = callback.monitor.removeprefix("val_")
                callback.mode = modes[task.senses.get(metric, Sense(None)).better]
        # Callbacks set it to end the training.
        task.model.stop_training = False
        return keras.callbacks.CallbackList(
            task.callbacks,
            model=task.model,
            epochs=epochs,
            steps=steps,
            verbose=0,
        )

    @property
    def stops(self) -> bool:
        return bool(self.task.model.stop_training)

    def flops(self) -> Flops:
        # Losses of a task's own may call the model any number of times.
        if self.task.training_losses is not None:
            return Flops(None, ("training_losses",))
        return flops_of(self.task.model, self._phases[self._phase].variables)
