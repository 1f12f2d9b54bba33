"""Loss and metrics of a whole set from sums, and inference with a trained model in one process."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.config.class_names import class_keys
from scalestudy.data.samples import Call
from scalestudy.engines.keras.model_files import load_model
from scalestudy.store.model_record import ModelRecord
from scalestudy.tasks.load import load_task
from scalestudy.tasks.task import DataInfo, Task
from scalestudy.util.errors import UserError


class Evaluation(ABC):
    """Sums of a task's loss and metrics. The variables of a metric must be sums over samples."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._start: dict[str, list[NDArray[Any]]] = {}
        for name, metric in task.metrics.items():
            values = map(keras.ops.convert_to_numpy, metric.variables)
            self._start[name] = list(map(np.asarray, values))

    @abstractmethod
    def sums(self, call: Call) -> list[Any]:
        """Return sums over this process's slices of one step: losses, samples, and metric variables."""

    def added(self, inputs: Any, targets: Any) -> list[Any]:
        """Return what these rows add to the losses and to each metric's variables, as float64 tensors."""
        ops = keras.ops
        outputs = self._task.model(inputs, training=False)
        losses = self._task.loss(targets, outputs)
        # In float64, as metrics are: sums over a large set lose digits in float32.
        sums = [ops.sum(ops.cast(losses, "float64"))]
        for name, metric in self._task.metrics.items():
            start = self.start(name)
            seen = self._task.seen_by(name, targets, outputs)
            state = metric.stateless_update_state(start, *seen)
            # The difference, since a metric need not begin at zero, and parts are added up.
            for after, old in zip(state, start, strict=True):
                sums.append(ops.cast(after - old, "float64"))
        return sums

    def results(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, float]:
        """Return loss and metrics from the total of `sums`, then the per-class values of metrics."""
        loss, seen, *states = sums
        results = {"loss": float(loss / seen)}
        parts = dict[str, float]()
        for name, metric in self._filled(states):
            value = keras.ops.convert_to_numpy(metric.result())
            results[name] = float(value)
            if hasattr(metric, "parts") and self._task.class_names:
                keys = class_keys(name, self._task.class_names)
                for index, of_class in metric.parts().items():
                    parts[keys[index]] = of_class
        for key, of_class in parts.items():
            # A class may have the name of a metric.
            results.setdefault(key, of_class)
        return results

    def _filled(
        self, states: Sequence[NDArray[np.float64]]
    ) -> Iterator[tuple[str, keras.Metric]]:
        """Yield the metrics in turn; each holds its sums until the next is requested."""
        remaining = iter(states)
        for name, metric in self._task.metrics.items():
            starts = self._start[name]
            for variable, start in zip(metric.variables, starts, strict=True):
                value = start + next(remaining)
                variable.assign(np.asarray(value, variable.dtype))
            yield name, metric
            # The next evaluation begins from zero.
            metric.reset_state()

    def constant(
        self,
        targets: Iterable[NDArray[Any]],
        answer: NDArray[np.float64],
    ) -> float | None:
        """Return the quality of predicting `answer` (shape [classes]) everywhere; None if not for classes.

        A single channel, or none, is the probability of the second of two classes. No variable is assigned,
        which could be a collective, so a single process may call this.
        """
        ops = keras.ops
        # The first metric is the one that decides.
        name, *_ = self._task.metrics
        metric = self._task.metrics[name]
        # They are unknown for a subclassed model.
        outputs: list[Any] = getattr(self._task.model, "outputs", [])
        if len(outputs) != 1:
            return None
        (output,) = outputs
        shape = tuple(output.shape[1:])
        state = self.start(name)
        for part in targets:
            labels = tuple(part.shape[1:])
            predicted: Any = answer
            channel_for_each_class = (*labels, len(answer))
            one_channel = (*labels, 1)
            if shape != channel_for_each_class:
                # One channel, or none, is the probability of the second class.
                if len(answer) != 2 or shape not in (labels, one_channel):
                    return None
                predicted = answer[1]
            answers = np.broadcast_to(predicted, (len(part), *shape))
            state = metric.stateless_update_state(
                state,
                ops.convert_to_tensor(part),
                ops.convert_to_tensor(answers, "float32"),
            )
        result = metric.stateless_result(state)
        return float(ops.convert_to_numpy(result))

    def start(self, metric: str) -> list[Any]:
        """Return the initial values of a metric's variables as tensors."""
        return [keras.ops.convert_to_tensor(value) for value in self._start[metric]]


class KerasInference:
    """See `Inference`.

    Args:
        model: A Keras model, or a PyTorch module (`ModuleModel`), for inputs in [0, 1].
        task: Returns the task with its loss; used by `losses`.
        within: Wraps the function that calls the model (`tf.function`, `torch.no_grad()`).
    """

    def __init__(
        self,
        model: Any,
        task: Callable[[], Task],
        within: Callable[[Any], Any] = lambda call: call,
    ) -> None:
        self._model = model
        self._call = within(partial(model, training=False))
        self._find_task = task

    @cached_property
    def _task(self) -> Task:
        return self._find_task()

    def outputs(self, inputs: NDArray[Any], scale: float) -> NDArray[np.float32]:
        outputs = self._outputs(inputs, scale)
        if not isinstance(self._model, keras.Model):
            # A module returns logits with channels first; a saved model is used by its probabilities.
            outputs = self._model.probabilities(outputs)
        return _array(outputs, "float32")

    def losses(
        self,
        inputs: NDArray[Any],
        targets: NDArray[Any],
        scale: float,
    ) -> NDArray[np.float64]:
        true = keras.ops.convert_to_tensor(targets)
        losses = self._task.loss(true, self._outputs(inputs, scale))
        return _array(losses, "float64")

    def _outputs(self, inputs: NDArray[Any], scale: float) -> Any:
        stored = keras.ops.convert_to_tensor(inputs)
        floats = keras.ops.cast(stored, keras.config.floatx())
        scaled = floats * scale
        outputs = keras.tree.flatten(self._call(scaled))
        if len(outputs) != 1:
            raise UserError(
                "a model of one input and one output",
                f"one of {len(outputs)} outputs",
                "Use the exported model in your own program, which knows what each output means.",
            )
        return outputs[0]


def open_inference(
    path: str,
    record: ModelRecord,
    within: Callable[[Any], Any],
) -> KerasInference:
    """Load a `.keras` file, or a state dict into the module that the task builds."""
    if path.endswith(".pt"):
        built = build_module(path, record)
        return KerasInference(built.model, lambda: built, within)
    # Built only for losses: predictions need no more than the file.
    task = partial(load_task, record.task, DataInfo.of_record(record), record.rebuilt)
    return KerasInference(load_model(path, record), task, within)


def build_module(path: str, record: ModelRecord) -> Task:
    """Build the task of a PyTorch module and load the state dict at `path` into it.

    Raises:
        UserError: If the weights belong to a different module.
    """
    task = load_task(record.task, DataInfo.of_record(record), record.rebuilt)
    task.model.restore(path)
    return task


def _array(tensor: Any, dtype: str) -> NDArray[Any]:
    cast = keras.ops.cast(tensor, dtype)
    return np.asarray(keras.ops.convert_to_numpy(cast))
