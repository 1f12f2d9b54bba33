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
from scalestudy.engines.buckets import Buckets
from scalestudy.engines.group import Joined
from scalestudy.engines.interface import DeviceMark
from scalestudy.engines.keras.adapt import adapt
from scalestudy.engines.keras.arithmetic import explain_refusals
from scalestudy.engines.keras.inference import Evaluation
from scalestudy.engines.keras.layer_context import Working, collecting, working
from scalestudy.engines.keras.phases import Phase, keep
from scalestudy.engines.keras.private import take_summed
from scalestudy.engines.keras.trainer import KerasTrainer
from scalestudy.engines.tensorflow.computed_mark import ComputedMark
from scalestudy.engines.tensorflow.layers import replace_layer
from scalestudy.engines.tensorflow.optimizers import LossScale, build_optimizer, fuse
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
from scalestudy.engines.tensorflow.state import TensorFlowState
from scalestudy.tasks.task import Task
from scalestudy.util.errors import UserError


def slice_of_step(part: Slice, index: Any, place: str | None) -> Slice:
    """Return the slice of step `index` of a call, whose arrays are on the device `place`."""
    # Without the device, TensorFlow would copy all arrays to the first GPU and back.
    with tf.device(place):
        step = part.step + tf.cast(index, tf.int64)
        part = part.mapped(itemgetter(index), step=step)
    # Each step begins anew: only the first part of a slice keeps the moving statistics of before.
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
        # Inputs are scaled here, on the device: as stored, in 8 bits, they are a quarter of the bytes to copy.
        targets = part.targets
        if scale is None:
            targets = in_floatx(targets)
        part = part._replace(inputs=scale_inputs(part.inputs, scale), targets=targets)
        floatx = keras.config.floatx()
        total = tf.cast(part.total, floatx)
        share = size * tf.cast(part.count, floatx) / total
        # A worker without samples computes one row of weight 0, so that it takes part in all exchanges.
        real = tf.cast(part.count > 0, floatx)
        # Only what this phase trains is watched: frozen layers then cost no gradients.
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            with (
                working(Working(part, share, sync_sum, Counter())),
                keep(model, frozen),
            ):
                if task.training_losses is not None:
                    sample_losses = task.training_losses(
                        model,
                        task.loss,
                        part.inputs,
                        part.targets,
                    )
                else:
                    outputs = model(part.inputs, training=True)
                    sample_losses = task.loss(part.targets, outputs)
            losses = real * tf.reduce_sum(tf.cast(sample_losses, floatx))
            # Divided by the samples of all workers, not of this slice: gradients are summed, and the sum is
            # that of the global mean even if slices differ in size.
            objective = losses / total
            # Regularisers count once per global batch, divided among workers by samples.
            if model.losses:
                penalties = tf.add_n(model.losses)
                objective += penalties * tf.cast(part.count, floatx) / total
            # Scaled inside the tape, before float16 gradients could underflow.
            if loss_scale:
                objective *= tf.cast(loss_scale.value, objective.dtype)
        # Zeros, and not None, for a variable that the loss does not reach: buckets hold one gradient for
        # each variable, the same on all workers.
        gradients = tape.gradient(
            objective,
            variables,
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        dense = [tf.convert_to_tensor(value) for value in gradients]
        return dense, tf.cast(losses, tf.float64)

    return gradient


class TensorFlowTrainer(KerasTrainer[TensorFlowState]):
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
        # Fused kernels update the copy of a variable on the replica's own device.
        fused = gpu(0) is not None and self._replicas.copies_weights
        self.loss_scale: LossScale | None = None

        def prepare(optimizer: keras.Optimizer) -> None:
            # Gradients are summed in buckets before; Keras would sum them again.
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
            make=lambda _: partial(build_optimizer, point, prepare),
            make_state=partial(TensorFlowState, group, self._replicas),
            scope=self._replicas.scope(),
            extra=loss_scale,
            halves=point.launch.bucket_size == "auto" and self._replicas.in_halves,
        )
        # A task may draw numbers of its own, which differ by rank: rank 0's values count.
        self.state.share()
        self._losses: Any = None
        # On a GPU, a call returns before it is computed: a thread waits for each, and takes the time.
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
            self.task,
            self._replicas,
            scale=self._scale,
            columns=columns,
        )
        self._statistics = [
            compiled(self._statistics_call(phase.frozen), call=self._replicas.sums)
            for phase in self._phases
        ]

    def _train_call(
        self,
        point: Point,
        phase: Phase,
        buckets: Buckets,
    ) -> Callable[[list[Slice]], Any]:
        """Return a function: slices of a call -> sum of losses in this process; it updates the weights.

        A worker's gradient is that of (sum of its slice's losses) / (samples of the *global* batch). Thus the
        sum over workers, in `buckets`, is the gradient of the global mean, for slices of any size.
        """
        task = self.task
        replicas = self._replicas
        loss_scale = self.loss_scale
        train = point.train
        trained = phase.variables
        variables = [variable.value for variable in trained]
        # Without such layers nothing is summed within a step, and workers may be computed in turn.
        synchronised = train.sync_batch_norm and bool(self.state.local)
        gradient = gradient_of(
            task,
            variables,
            replicas.size,
            replicas.layer_sum if synchronised else None,
            scale=self._scale,
            frozen=phase.frozen,
            loss_scale=loss_scale,
        )
        compute = gradient
        if train.xla:
            # Only a worker's computation: on CPUs, XLA compiles neither TensorFlow's rings nor Horovod's sums.
            compute = tf.function(gradient, jit_compile=True, autograph=False)
        if train.accumulate > 1:
            compute = in_parts(compute, train.accumulate, variables)

        def update(gradients: Gradients) -> None:
            if loss_scale:
                # Unscaled before the optimizer, which clips by the true norm.
                gradients = [
                    value / tf.cast(loss_scale.value, value.dtype)
                    for value in gradients
                ]
            phase.optimizer.apply(gradients, trained)

        def one(call: list[Slice], index: Any) -> Any:
            slices = [
                slice_of_step(part, index, gpu(device))
                for device, part in enumerate(call)
            ]
            if replicas.overtakes:
                # Workers update in any order: the rate is that of the step computed, not of updates done.
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
                return one(call, 0)  # a loop of one step would only cost
            # Steps depend on each other through the weights.
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
        model = self.task.model
        norms = self.state.norms
        replicas = self._replicas
        scale = self._scale

        def of_slice(part: Slice) -> list[Any]:
            part = part.mapped(itemgetter(0))
            inputs = scale_inputs(part.inputs, scale)
            real = tf.cast(part.count > 0, tf.float64)
            with (
                keep(model, frozen),
                collecting(tf.compat.v1.get_default_graph()) as moments,
            ):
                model(inputs, training=False)
            # A slice without samples holds one row, which must not count.
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
            targets = part.targets
            if scale is None:
                targets = in_floatx(targets)
            # A device without samples evaluates one row of weight 0.
            real = tf.cast(part.count > 0, tf.float64)
            added = self.added(scale_inputs(part.inputs, scale), targets)
            total, *states = (real * value for value in added)
            return [total, tf.cast(part.count, tf.float64), *states]

        self._compute = Compiled(
            lambda call: replicas.total(of_slice, call),
            columns=columns,
            call=replicas.sums,
        )

    def sums(self, call: Call) -> list[Any]:
        values: list[Any] = self._compute(call)
        return values
