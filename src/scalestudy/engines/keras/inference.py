"""A trained model in a process of its own, whatever backend of Keras's computes."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.data.images.form import as_stored
from scalestudy.engines.base import Judged
from scalestudy.engines.keras.evaluation import quality_of_each
from scalestudy.engines.keras.model_files import load_model
from scalestudy.study.model_record import ModelRecord
from scalestudy.tasks.base import DataInfo, Task
from scalestudy.tasks.load import load_task
from scalestudy.util.errors import UserError


class KerasInference:
    """See `Inference`.

    Args:
        model: Of inputs in [0, 1], or stored as in `stored`; of Keras's, or PyTorch's (`ModuleModel`).
        task: Gives its loss and metrics, where samples are to be judged.
        within: Makes of what calls the model what computes it.
        stored: What the model takes where it scales its inputs itself; None where it does not.
    """

    def __init__(
        self, model: Any, task: Callable[[], Task], within: Callable[[Any], Any] = lambda call: call, *,
        stored: ModelRecord | None = None,
    ) -> None:  # fmt: skip
        self._model, self._call = model, within(partial(model, training=False))
        self._find_task, self._stored = task, stored

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
        """What others are told of the model's outputs."""
        told = outputs if isinstance(self._model, keras.Model) else self._model.probabilities(outputs)
        return _array(told, "float32")

    def _outputs(self, inputs: NDArray[Any], scale: float) -> Any:
        if self._stored is not None:
            given = as_stored(inputs, scale, self._stored.dtype, self._stored.scale)
            tensor = keras.ops.convert_to_tensor(given)
        else:
            floatx = keras.config.floatx()
            tensor = keras.ops.cast(keras.ops.convert_to_tensor(inputs), floatx) * scale
        outputs = keras.tree.flatten(self._call(tensor))
        if len(outputs) != 1:
            raise UserError(
                "a model of one input and one output", f"one of {len(outputs)} outputs",
                "Use the exported model in your own program, which knows what each output means.",
            )  # fmt: skip
        return outputs[0]


def open_inference(path: str, record: ModelRecord, within: Callable[[Any], Any]) -> KerasInference:
    """Load a `.keras` file, or the state dict of a module, which its task builds again."""
    if path.endswith(".pt"):
        built = built_module(path, record)
        return KerasInference(built.model, lambda: built, within)
    stored = record if record.inputs == "stored" else None
    task = partial(load_task, record.task, DataInfo.of_record(record), record.rebuilt)
    return KerasInference(load_model(path, record.task), task, within, stored=stored)


def built_module(path: str, record: ModelRecord) -> Task:
    """The task of a module whose state dict is at `path`, with these weights.

    Raises:
        UserError: If they are another module's.
    """
    task = load_task(record.task, DataInfo.of_record(record), record.rebuilt)
    task.model.restore(path)
    return task


def _array(tensor: Any, dtype: str) -> NDArray[Any]:
    return np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(tensor, dtype)))
