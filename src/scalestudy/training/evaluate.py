"""Evaluation over a whole set: every sample once, numerators and denominators summed, divided once."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from scalestudy.data.loader import Loader
from scalestudy.data.order import Indices
from scalestudy.engines.tensorflow.step import Compiled, Part, parts_of, scaled_inputs
from scalestudy.strategies.base import Strategy
from scalestudy.tasks.base import Task


class Evaluator:
    """Computes loss and metrics of a task over a set that the workers share out among them.

    Args:
        task: Model, loss and metrics. A metric's variables must be sums over samples.
        strategy: How the workers combine.
        scale: What multiplies stored inputs into [0, 1].
    """

    def __init__(self, task: Task, strategy: Strategy, *, scale: float) -> None:
        self._task, self._strategy = task, strategy
        self._start = {name: [v.numpy() for v in metric.variables] for name, metric in task.metrics.items()}
        self._compute = self._compiled(scale)

    def _compiled(self, scale: float) -> Compiled:
        task, strategy = self._task, self._strategy

        def of_part(part: Part) -> list[Any]:
            inputs, targets, _, count, _ = part
            real = tf.cast(count > 0, tf.float64)
            outputs = task.model(scaled_inputs(inputs[0], scale), training=False)
            losses = task.loss(targets[0], outputs)
            sums = [real * tf.reduce_sum(tf.cast(losses, tf.float64)), tf.cast(count, tf.float64)]
            for name, metric in task.metrics.items():
                start = [tf.constant(value) for value in self._start[name]]
                state = metric.stateless_update_state(start, targets[0], outputs)
                for after, before in zip(state, start, strict=True):
                    sums.append(real * tf.cast(after - before, tf.float64))
            return sums

        return Compiled(lambda parts: strategy.total(of_part, parts))

    def __call__(self, loader: Loader, samples: Indices) -> dict[str, float]:
        """Loss and metrics over `samples` (rows, shape [M]), the same on every rank."""
        sums: list[Any] | None = None
        for call in loader.epoch(samples):
            part = [np.asarray(each) for each in self._compute(parts_of(call))]
            sums = part if sums is None else [a + b for a, b in zip(sums, part, strict=True)]
        assert sums is not None
        flat = self._strategy.host_sum(np.concatenate([np.ravel(each) for each in sums]))
        pieces = np.split(flat, np.cumsum([np.size(each) for each in sums])[:-1])
        parts = [piece.reshape(np.shape(each)) for piece, each in zip(pieces, sums, strict=True)]
        return self._results(parts)

    def _results(self, parts: list[Any]) -> dict[str, float]:
        loss, seen, *states = parts
        results = {"loss": float(loss / seen)}
        remaining = iter(states)
        for name, metric in self._task.metrics.items():
            state = [start + next(remaining) for start in self._start[name]]
            results[name] = self._result(metric, state)
        return results

    def _result(self, metric: keras.Metric, state: list[Any]) -> float:
        for variable, value in zip(metric.variables, state, strict=True):
            variable.assign(np.asarray(value, variable.dtype))
        result = float(np.asarray(metric.result()))
        metric.reset_state()
        return result
