"""A trained model in a process of its own, computed by TensorFlow."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.data.images.form import as_stored
from scalestudy.engines.base import Judged
from scalestudy.engines.keras.evaluation import quality_of_each
from scalestudy.engines.keras.model_files import load_model
from scalestudy.engines.tensorflow.staging import scaled_inputs
from scalestudy.study.model_record import ModelRecord
from scalestudy.tasks.base import DataInfo, Task
from scalestudy.tasks.load import load_task
from scalestudy.util.errors import UserError


class TensorFlowInference:
    """See `Inference`.

    Args:
        model: From inputs in [0, 1], or stored as in `stored`, to outputs.
        task: Gives its loss and metrics, where samples are to be judged.
        traced: Whether to compile a function; not worth its time for a few samples.
        stored: What the model takes where it scales its inputs itself; None where it does not.
    """

    def __init__(
        self, model: keras.Model, task: Callable[[], Task], *, traced: bool = True,
        stored: ModelRecord | None = None,
    ) -> None:  # fmt: skip
        self._find_task, self._stored = task, stored
        call = partial(model, training=False)
        self._model = tf.function(call) if traced else call

    def outputs(self, inputs: NDArray[Any], scale: float) -> NDArray[np.float32]:
        return np.asarray(tf.cast(self._outputs(inputs, scale), tf.float32))

    @cached_property
    def _task(self) -> Task:
        return self._find_task()

    def judged(self, inputs: NDArray[Any], targets: NDArray[Any], scale: float) -> Judged:
        outputs, true = self._outputs(inputs, scale), tf.constant(targets)
        losses = np.asarray(tf.cast(self._task.loss(true, outputs), tf.float64))
        qualities = quality_of_each(self._task, true, outputs)
        return Judged(np.asarray(tf.cast(outputs, tf.float32)), losses, qualities)

    def _outputs(self, inputs: NDArray[Any], scale: float) -> Any:
        if self._stored is not None:
            given = tf.constant(as_stored(inputs, scale, self._stored.dtype, self._stored.scale))
        else:
            given = scaled_inputs(tf.constant(inputs), scale)
        outputs = keras.tree.flatten(self._model(given))
        if len(outputs) != 1:
            raise UserError(
                "a model of one input and one output", f"one of {len(outputs)} outputs",
                "Use the exported model in a program of your own, which knows what each output means.",
            )  # fmt: skip
        return outputs[0]


def open_inference(path: str, record: ModelRecord) -> TensorFlowInference:
    """Load a `.keras` file."""
    stored = record if record.inputs == "stored" else None
    task = partial(load_task, record.task, DataInfo.of_record(record), record.rebuilt)
    return TensorFlowInference(load_model(path, record.task), task, stored=stored)
