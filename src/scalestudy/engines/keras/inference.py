"""Inference with a trained model in one process, for every backend of Keras."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.base import Judged
from scalestudy.engines.keras.evaluation import quality_of_each
from scalestudy.engines.keras.model_files import load_model
from scalestudy.store.model_record import ModelRecord
from scalestudy.tasks.load import load_task
from scalestudy.tasks.task import DataInfo, Task
from scalestudy.util.errors import UserError


class KerasInference:
    """See `Inference`.

    Args:
        model: A Keras model, or a PyTorch module (`ModuleModel`), for inputs in [0, 1].
        task: Returns the task with its loss and metrics; used by `judged`.
        within: Wraps the function that calls the model (`tf.function`, `torch.no_grad()`).
    """

    def __init__(
        self, model: Any, task: Callable[[], Task], within: Callable[[Any], Any] = lambda call: call
    ) -> None:
        self._model, self._call, self._find_task = model, within(partial(model, training=False)), task

    @cached_property
    def _task(self) -> Task:
        return self._find_task()

    def outputs(self, inputs: NDArray[Any], scale: float) -> NDArray[np.float32]:
        return self._shown(self._outputs(inputs, scale))

    def judged(self, inputs: NDArray[Any], targets: NDArray[Any], scale: float) -> Judged:
        outputs, true = self._outputs(inputs, scale), keras.ops.convert_to_tensor(targets)
        losses = _array(self._task.loss(true, outputs), "float64")
        qualities = quality_of_each(self._task, true, outputs)
        return Judged(self._shown(outputs), losses, qualities)

    def _shown(self, outputs: Any) -> NDArray[np.float32]:
        """Return the outputs as an array; for a PyTorch module, its probabilities."""
        told = outputs if isinstance(self._model, keras.Model) else self._model.probabilities(outputs)
        return _array(told, "float32")

    def _outputs(self, inputs: NDArray[Any], scale: float) -> Any:
        tensor = keras.ops.cast(keras.ops.convert_to_tensor(inputs), keras.config.floatx()) * scale
        outputs = keras.tree.flatten(self._call(tensor))
        if len(outputs) != 1:
            raise UserError(
                "a model of one input and one output",
                f"one of {len(outputs)} outputs",
                "Use the exported model in your own program, which knows what each output means.",
            )
        return outputs[0]


def open_inference(path: str, record: ModelRecord, within: Callable[[Any], Any]) -> KerasInference:
    """Load a `.keras` file, or a state dict into the module that the task builds."""
    if path.endswith(".pt"):
        built = built_module(path, record)
        return KerasInference(built.model, lambda: built, within)
    task = partial(load_task, record.task, DataInfo.of_record(record), record.rebuilt)
    return KerasInference(load_model(path, record.task), task, within)


def built_module(path: str, record: ModelRecord) -> Task:
    """Build the task of a PyTorch module and load the state dict at `path` into it.

    Raises:
        UserError: If the weights belong to a different module.
    """
    task = load_task(record.task, DataInfo.of_record(record), record.rebuilt)
    task.model.restore(path)
    return task


def _array(tensor: Any, dtype: str) -> NDArray[Any]:
    return np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(tensor, dtype)))
