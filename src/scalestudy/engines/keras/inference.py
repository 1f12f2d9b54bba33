"""A trained Keras model in a process of its own."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.data.images.form import as_stored
from scalestudy.engines.base import Judged
from scalestudy.engines.keras.evaluation import quality_of_each
from scalestudy.study.model_record import ModelRecord
from scalestudy.tasks.base import Task
from scalestudy.util.errors import UserError


class KerasInference:
    """See `Inference`.

    Args:
        call: Computes the model's outputs: of inputs in [0, 1], or stored as in `stored`.
        task: Gives its loss and metrics, where samples are to be judged.
        stored: What the model takes where it scales its inputs itself; None where it does not.
    """

    def __init__(
        self, call: Callable[[Any], Any], task: Callable[[], Task], *, stored: ModelRecord | None = None
    ) -> None:
        self._call, self._find_task, self._stored = call, task, stored

    @cached_property
    def _task(self) -> Task:
        return self._find_task()

    def outputs(self, inputs: NDArray[Any], scale: float) -> NDArray[np.float32]:
        return _array(self.shown(self._outputs(inputs, scale)), "float32")

    def shown(self, outputs: Any) -> Any:
        """What others are told of the model's outputs."""
        return outputs

    def judged(self, inputs: NDArray[Any], targets: NDArray[Any], scale: float) -> Judged:
        outputs, true = self._outputs(inputs, scale), keras.ops.convert_to_tensor(targets)
        losses = _array(self._task.loss(true, outputs), "float64")
        qualities = quality_of_each(self._task, true, outputs)
        return Judged(_array(self.shown(outputs), "float32"), losses, qualities)

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
                "Use the exported model in a program of your own, which knows what each output means.",
            )  # fmt: skip
        return outputs[0]


def _array(tensor: Any, dtype: str) -> NDArray[Any]:
    return np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(tensor, dtype)))
