"""One process's part of a run, computed with TensorFlow: exact gradients, for any division into slices."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import itemgetter
from typing import Any, SupportsFloat

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.config.point import Point
from scalestudy.data.samples import Call, Described, Slice, leaves
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Buckets, Joined
from scalestudy.engines.interface import DeviceMark
from scalestudy.engines.keras.adapt import adapt
from scalestudy.engines.keras.arithmetic import explain_refusals
from scalestudy.engines.keras.inference import Evaluation
from scalestudy.engines.keras.layer_context import Working, collecting, working
from scalestudy.engines.keras.phases import Phase, keep
from scalestudy.engines.keras.private import take_summed
from scalestudy.engines.keras.trainer import KerasTrainer, cast
from scalestudy.engines.tensorflow.computed_mark import ComputedMark
from scalestudy.engines.tensorflow.layers import replace_layer
from scalestudy.engines.tensorflow.optimizers import LossScale, fuse, optimizer_of
from scalestudy.engines.tensorflow.replicas import (
    CompiledReplicas,
    Gradients,
    in_parts,
    tensors,
)
from scalestudy.engines.tensorflow.staging import (
    Compiled,
    gpu,
    in_floatx,
    scale_inputs,
    stage,
)
from scalestudy.tasks.task import Task
from scalestudy.util.errors import UserError


def step_of(part: Slice, index: Any, place: str | None) -> Slice:
    """Return the slice of step `index` of a call, whose arrays are on the device `place`."""
    with tf.device(
        place
    ):  # without it, TensorFlow would copy all arrays to the first GPU and back
        part = part.mapped(itemgetter(index), step=part.step + tf.cast(index, tf.int64))
    return part._replace(first=tf.constant(True))


def gradient_of(
    task: Task,
    variables: Sequence[Any],
    size: int,
    sync_sum: Callable[[Any], Any] | None,
    *,
    scale: float | None,
    frozen: Sequence[str],
    loss_scale: LossScale | None,
) -> Callable[[Slice], tuple[Gradients, Any]]:
    """Return a traced function: slice -> gradients of `variables`, and the sum of losses, of a worker."""
    model = task.model

    def gradient(part: Slice) -> tuple[Gradients, Any]:
        targets = in_floatx(part.targets) if scale is None else part.targets
        part = part._replace(inputs=scale_inputs(part.inputs, scale), targets=targets)
        floatx = keras.config.floatx()
        total = tf.cast(part.total, floatx)
        share = size * tf.cast(part.count, floatx) / total
        real = tf.cast(part.count > 0, floatx)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            with (
                working(Working(part, share, sync_sum, Counter())),
                keep(model, frozen),
            ):
                if task.training_losses is not None:
                    sample_losses = task.training_losses(
                        model, task.loss, part.inputs, part.targets
                    )
                else:
                    sample_losses = task.loss(
                        part.targets, model(part.inputs, training=True)
                    )
            losses = real * tf.reduce_sum(tf.cast(sample_losses, floatx))
            objective = losses / total
            if (
                model.losses
            ):  # regularisers count once per global batch, divided by samples
                objective += (
                    tf.add_n(model.losses) * tf.cast(part.count, floatx) / total
                )
            if loss_scale:
                objective *= tf.cast(loss_scale.value, objective.dtype)
        gradients = tape.gradient(
            objective, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        return [tf.convert_to_tensor(value) for value in gradients], tf.cast(
            losses, tf.float64
        )

    return gradient


class TensorFlowTrainer(KerasTrainer):
    """Model, optimizer and compiled functions of one process; see `Trainer` and `Engine.trainer`."""

    def __init__(
        self,
        point: Point,
        prepared: Prepared,
        rates: NDArray[np.float64],
        joined: Joined,
    ) -> None:
        group, self._replicas = tensors(joined)
        self._replicas.compressed = point.launch.compression == "fp16"
        self._scale = prepared.scale
        train = point.train
        if train.xla and prepared.has_sequences:
            raise UserError(
                "xla = false for sequences of different length, since XLA would compile each length",
                "xla = true",
                "Remove it, or return sequences of one length from read(data).",
            )
        fused = gpu(0) is not None and self._replicas.copies_weights
        self.loss_scale: LossScale | None = None

        def prepare(optimizer: keras.Optimizer) -> None:
            take_summed(optimizer)
            if fused:
                fuse(optimizer)

        def loss_scale() -> list[keras.Variable]:
            if train.precision != "mixed_float16":
                return []
            self.loss_scale = LossScale()
            return self.loss_scale.variables

        super().__init__(
            point,
            prepared,
            rates,
            group,
            adapt=partial(adapt, replace_layer=replace_layer),
            make=lambda _: partial(optimizer_of, point, prepare),
            scope=self._replicas.scope(),
            extra=loss_scale,
            halves=point.launch.bucket_size == "auto" and self._replicas.in_halves,
        )
        self.share()
        self._losses: Any = None
        early = gpu(0) is not None and not self._replicas.overtakes
        self._watcher = ThreadPoolExecutor(1, "computed") if early else None
        columns = prepared.columns if prepared.has_sequences else None
        compiled = partial(Compiled, columns=columns)
        self._train = [
            compiled(
                self._train_call(point, phase, buckets),
                fixed=train.xla,
                call=self._replicas.call,
            )
            for phase, buckets in zip(self._phases, self._cuts, strict=True)
        ]
        self._evaluation = CompiledEvaluation(
            self.task, self._replicas, scale=self._scale, columns=columns
        )
        self._statistics = [
            compiled(self._statistics_call(phase.frozen), call=self._replicas.sums)
            for phase in self._phases
        ]

    def _train_call(
        self, point: Point, phase: Phase, buckets: Buckets
    ) -> Callable[[list[Slice]], Any]:
        """Return a function: slices of a call -> sum of losses in this process; it updates the weights.

        A worker's gradient is that of (sum of its slice's losses) / (samples of the *global* batch). Thus the
        sum over workers, in `buckets`, is the gradient of the global mean, for slices of any size.
        """
        task, replicas, train, loss_scale = (
            self.task,
            self._replicas,
            point.train,
            self.loss_scale,
        )
        trained = phase.variables
        variables = [variable.value for variable in trained]
        synchronised = train.sync_batch_norm and bool(self.local)
        gradient = gradient_of(
            task,
            variables,
            replicas.size,
            replicas.sync_sum if synchronised else None,
            scale=self._scale,
            frozen=phase.frozen,
            loss_scale=loss_scale,
        )
        compute = (
            tf.function(gradient, jit_compile=True, autograph=False)
            if train.xla
            else gradient
        )
        if train.accumulate > 1:
            compute = in_parts(compute, train.accumulate, variables)

        def update(gradients: Gradients) -> None:
            if loss_scale:
                gradients = [
                    value / tf.cast(loss_scale.value, value.dtype)
                    for value in gradients
                ]
            phase.optimizer.apply(gradients, trained)

        def one(call: list[Slice], index: Any) -> Any:
            slices = [
                step_of(part, index, gpu(device)) for device, part in enumerate(call)
            ]
            if replicas.overtakes:
                phase.optimizer.iterations.assign(slices[0].step - phase.first)
            return replicas.step(
                compute,
                update,
                slices,
                loss_scale,
                buckets=buckets,
                together=synchronised,
            )

        def train_call(call: list[Slice]) -> Any:
            if leaves(call[0].inputs)[0].shape[0] == 1:
                return one(call, 0)
            _, losses = tf.while_loop(
                lambda index, _: index < call[0].steps,
                lambda index, losses: (index + 1, losses + one(call, index)),
                (tf.constant(0), tf.constant(0.0, tf.float64)),
                parallel_iterations=1,
            )
            return losses

        return train_call

    def _statistics_call(self, frozen: Sequence[str]) -> Callable[[list[Slice]], Any]:
        """Return a function: slices of a step -> the sums of `Trainer.statistics` without `frozen` layers."""
        model, norms, replicas, scale = (
            self.task.model,
            self.norms,
            self._replicas,
            self._scale,
        )

        def of_slice(part: Slice) -> list[Any]:
            part = part.mapped(itemgetter(0))
            inputs = scale_inputs(part.inputs, scale)
            real = tf.cast(part.count > 0, tf.float64)
            with (
                keep(model, frozen),
                collecting(tf.compat.v1.get_default_graph()) as moments,
            ):
                model(inputs, training=False)
            return [real * value for value in moments.sums(norms)]

        return lambda call: replicas.total(of_slice, call)

    def stage(self, part: Slice, device: int) -> Slice:
        return stage(part, device)

    def train(self, call: Call) -> SupportsFloat:
        self.enter(call[0].step)
        with explain_refusals():
            losses: SupportsFloat = self._train[self._phase](call)
        self._losses = losses
        return losses

    def mark(self) -> DeviceMark | None:
        """See `Trainer.mark`. On CPUs, and where others compute, a call returns when it is computed."""
        if self._watcher is None:
            return None
        return ComputedMark(self._watcher, self._losses)

    def evaluate(self, call: Call) -> list[Any]:
        with explain_refusals():
            return super().evaluate(call)

    def arrays(self, sums: Sequence[Any]) -> list[NDArray[np.float64]]:
        with explain_refusals():
            return self._replicas.arrays(sums)

    def statistics(self, call: Call) -> list[Any]:
        with explain_refusals():
            values: list[Any] = self._statistics[self._phase](call)
        return values

    def _copies(self, variables: Sequence[keras.Variable]) -> list[NDArray[Any]]:
        return [
            np.stack(self._replicas.copies(variable.value)) for variable in variables
        ]

    def _assign_copies(
        self, variables: Sequence[keras.Variable], copies: Sequence[NDArray[Any]]
    ) -> None:
        for variable, rows in zip(variables, copies, strict=True):
            for part, row in zip(
                self._replicas.parts(variable.value), rows, strict=True
            ):
                part.assign(cast(row, variable.dtype))

    def average(self) -> None:
        self._replicas.average([variable.value for variable in self.local])

    def weights(self) -> list[list[NDArray[Any]]]:
        copies = [
            self._replicas.copies(weight.value) for weight in self.task.model.weights
        ]
        return [list(copy) for copy in zip(*copies, strict=True)]


class CompiledEvaluation(Evaluation):
    """See `Evaluation`.

    Args:
        task: Model, loss and metrics.
        replicas: The devices that evaluate.
        scale: Maps stored inputs to [0, 1]; with None inputs are not scaled.
        columns: Describes inputs and targets if some are sequences of different length.
    """

    def __init__(
        self,
        task: Task,
        replicas: CompiledReplicas,
        *,
        scale: float | None,
        columns: tuple[Described, Described] | None = None,
    ) -> None:
        super().__init__(task)

        def of_slice(part: Slice) -> list[Any]:
            part = part.mapped(itemgetter(0))
            targets = in_floatx(part.targets) if scale is None else part.targets
            real = tf.cast(part.count > 0, tf.float64)
            total, *states = (
                real * added
                for added in self.added(scale_inputs(part.inputs, scale), targets)
            )
            return [total, tf.cast(part.count, tf.float64), *states]

        self._compute = Compiled(
            lambda call: replicas.total(of_slice, call),
            columns=columns,
            call=replicas.sums,
        )

    def sums(self, call: Call) -> list[Any]:
        values: list[Any] = self._compute(call)
        return values
