"""What a slice adds to the loss and the metrics of a whole set, and what the sums come to."""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.data.columns import Described, map_columns
from scalestudy.data.loading.slices import Call, Slice
from scalestudy.engines.tensorflow.staging import Compiled, scaled_inputs, typed
from scalestudy.engines.tensorflow.strategies.replicas import CompiledReplicas
from scalestudy.study.metrics import class_keys
from scalestudy.tasks.base import Task


class Evaluation:
    """Numerators and denominators of a task's loss and metrics.

    Args:
        task: Model, loss and metrics. A metric's variables must be sums over samples.
        replicas: The devices that share a slice out.
        scale: What multiplies stored inputs into [0, 1]; None leaves them as they are.
        columns: What inputs and targets are, where some are sequences of different length.
    """

    def __init__(
        self, task: Task, replicas: CompiledReplicas, *, scale: float | None,
        columns: tuple[Described, Described] | None = None,
    ) -> None:  # fmt: skip
        self._task = task
        self._start = {name: [v.numpy() for v in metric.variables] for name, metric in task.metrics.items()}

        def of_slice(part: Slice) -> list[Any]:
            inputs, targets = (
                map_columns(itemgetter(0), part.inputs),
                map_columns(itemgetter(0), part.targets),
            )
            real = tf.cast(part.count > 0, tf.float64)
            outputs = task.model(scaled_inputs(inputs, scale), training=False)
            targets = typed(targets) if scale is None else targets
            losses = task.loss(targets, outputs)
            sums = [real * tf.reduce_sum(tf.cast(losses, tf.float64)), tf.cast(part.count, tf.float64)]
            for name, metric in task.metrics.items():
                start = [tf.constant(value) for value in self._start[name]]
                state = metric.stateless_update_state(start, *task.seen_by(name, targets, outputs))
                for after, before in zip(state, start, strict=True):
                    sums.append(real * tf.cast(after - before, tf.float64))
            return sums

        self._compute = Compiled(lambda call: replicas.total(of_slice, call), columns=columns)

    def sums(self, call: Call) -> list[NDArray[np.float64]]:
        """Of this process's slices of one step: losses, samples, and each metric's variables."""
        return [np.asarray(value) for value in self._compute(call)]

    def results(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, float]:
        """Loss and metrics of what `sums` gave, added up; then the metrics' values for each class."""
        loss, seen, *states = sums
        results, parts = {"loss": float(loss / seen)}, dict[str, float]()
        for name, metric in self._filled(states):
            if hasattr(metric, "matrix"):
                continue
            results[name] = float(np.asarray(metric.result()))
            if hasattr(metric, "parts") and self._task.class_names:
                keys = class_keys(name, self._task.class_names)
                parts |= {keys[index]: value for index, value in metric.parts().items()}
        return results | {name: value for name, value in parts.items() if name not in results}

    def matrices(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, list[list[int]]]:
        """Those of the metrics that have one, by the metrics' names."""
        filled = self._filled(sums[2:])
        return {name: metric.matrix().tolist() for name, metric in filled if hasattr(metric, "matrix")}

    def _filled(self, states: Sequence[NDArray[np.float64]]) -> Iterator[tuple[str, keras.Metric]]:
        """The metrics one after the other, each holding its sums while it is looked at."""
        remaining = iter(states)
        for name, metric in self._task.metrics.items():
            for variable, start in zip(metric.variables, self._start[name], strict=True):
                variable.assign(np.asarray(start + next(remaining), variable.dtype))
            yield name, metric
            metric.reset_state()

    def constant(self, targets: Iterable[NDArray[Any]], answer: NDArray[np.float64]) -> float | None:
        """Quality of giving `answer` (shape [classes]) everywhere; None if the outputs are not of classes.

        A single channel, or none, is the probability of the second of two classes. No variable is touched:
        one process may ask alone, where assigning to a variable would be a collective of all.
        """
        name, metric = next(iter(self._task.metrics.items()))
        outputs: list[Any] = getattr(self._task.model, "outputs", [])  # a class of one's own does not tell
        shape = tuple(outputs[0].shape[1:]) if len(outputs) == 1 else None
        state = [tf.constant(value) for value in self._start[name]]
        for part in targets:
            ours = shape == (*part.shape[1:], len(answer))
            second = len(answer) == 2 and shape in (part.shape[1:], (*part.shape[1:], 1))
            if shape is None or not (ours or second):
                return None
            answers = np.broadcast_to(answer if ours else answer[1], (len(part), *shape))
            state = metric.stateless_update_state(state, tf.constant(part), tf.constant(answers, tf.float32))
        return float(np.asarray(metric.stateless_result(state)))
