"""What sums of losses and metrics over a whole set come to."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.data.loading.slices import Call
from scalestudy.study.metrics import class_keys
from scalestudy.tasks.base import Task


class Evaluation(ABC):
    """Numerators and denominators of a task's loss and metrics, whose variables must be sums over samples."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._start = {
            name: [np.asarray(keras.ops.convert_to_numpy(variable)) for variable in metric.variables]
            for name, metric in task.metrics.items()
        }

    @abstractmethod
    def sums(self, call: Call) -> list[NDArray[np.float64]]:
        """Of this process's slices of one step: losses, samples, and each metric's variables."""

    def added(self, inputs: Any, targets: Any) -> list[Any]:
        """What these rows add to the sum of losses and to each metric's variables: float64 tensors."""
        outputs = self._task.model(inputs, training=False)
        sums = [keras.ops.sum(keras.ops.cast(self._task.loss(targets, outputs), "float64"))]
        for name, metric in self._task.metrics.items():
            start = self.start(name)
            state = metric.stateless_update_state(start, *self._task.seen_by(name, targets, outputs))
            sums += [keras.ops.cast(after - old, "float64") for after, old in zip(state, start, strict=True)]
        return sums

    def results(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, float]:
        """Loss and metrics of what `sums` gave, added up; then the metrics' values for each class."""
        loss, seen, *states = sums
        results, parts = {"loss": float(loss / seen)}, dict[str, float]()
        for name, metric in self._filled(states):
            if hasattr(metric, "matrix"):
                continue
            results[name] = float(keras.ops.convert_to_numpy(metric.result()))
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
        tensor = keras.ops.convert_to_tensor
        state = self.start(name)
        for part in targets:
            ours = shape == (*part.shape[1:], len(answer))
            second = len(answer) == 2 and shape in (part.shape[1:], (*part.shape[1:], 1))
            if shape is None or not (ours or second):
                return None
            answers = np.broadcast_to(answer if ours else answer[1], (len(part), *shape))
            state = metric.stateless_update_state(state, tensor(part), tensor(answers, "float32"))
        return float(keras.ops.convert_to_numpy(metric.stateless_result(state)))

    def start(self, metric: str) -> list[Any]:
        """The tensors that a metric begins with."""
        return [keras.ops.convert_to_tensor(value) for value in self._start[metric]]


def quality_of_each(task: Task, targets: Any, outputs: Any) -> NDArray[np.float64]:
    """The task's first metric over each sample alone, shape [B]; NaN where it has no number for one."""
    name, metric = next(iter(task.metrics.items()))
    targets, outputs = task.seen_by(name, targets, outputs)
    start = [keras.ops.convert_to_tensor(variable) for variable in metric.variables]
    values = []
    for row in range(len(targets)):
        state = metric.stateless_update_state(start, targets[row : row + 1], outputs[row : row + 1])
        value = np.asarray(keras.ops.convert_to_numpy(metric.stateless_result(state)), np.float64)
        values.append(float(value) if value.ndim == 0 else np.nan)
    return np.array(values)
