"""What a slice adds to the loss and the metrics of a whole set, computed by TensorFlow."""

from operator import itemgetter
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.data.columns import Described, map_columns
from scalestudy.data.loading.slices import Call, Slice
from scalestudy.engines.keras.evaluation import Evaluation
from scalestudy.engines.tensorflow.staging import Compiled, scaled_inputs, typed
from scalestudy.engines.tensorflow.strategies.replicas import CompiledReplicas
from scalestudy.tasks.base import Task


class CompiledEvaluation(Evaluation):
    """See `Evaluation`.

    Args:
        task: Model, loss and metrics.
        replicas: The devices that share a slice out.
        scale: What multiplies stored inputs into [0, 1]; None leaves them as they are.
        columns: What inputs and targets are, where some are sequences of different length.
    """

    def __init__(
        self, task: Task, replicas: CompiledReplicas, *, scale: float | None,
        columns: tuple[Described, Described] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(task)

        def of_slice(part: Slice) -> list[Any]:
            part = part._replace(
                inputs=map_columns(itemgetter(0), part.inputs),
                targets=map_columns(itemgetter(0), part.targets),
            )
            inputs, targets, *_ = replicas.read(part, training=False)
            real = tf.cast(part.count > 0, tf.float64)
            outputs = task.model(scaled_inputs(inputs, scale), training=False)
            targets = typed(targets) if scale is None else targets
            losses = task.loss(targets, outputs)
            sums = [real * tf.reduce_sum(tf.cast(losses, tf.float64)), tf.cast(part.count, tf.float64)]
            for name, metric in task.metrics.items():
                start = self.start(name)
                state = metric.stateless_update_state(start, *task.seen_by(name, targets, outputs))
                for after, before in zip(state, start, strict=True):
                    sums.append(real * tf.cast(after - before, tf.float64))
            return sums

        self._arrays = replicas.arrays
        self._compute = Compiled(
            lambda call: replicas.total(of_slice, call), columns=columns, call=replicas.call
        )

    def sums(self, call: Call) -> list[NDArray[np.float64]]:
        return self._arrays(self._compute(call))
