"""A trained model in a process of its own, computed by TensorFlow."""

from collections.abc import Callable
from functools import partial

import keras
import tensorflow as tf

from scalestudy.engines.keras.inference import KerasInference
from scalestudy.engines.keras.model_files import load_model
from scalestudy.study.model_record import ModelRecord
from scalestudy.tasks.base import DataInfo, Task
from scalestudy.tasks.load import load_task


class TensorFlowInference(KerasInference):
    """See `Inference`; `traced` says whether to compile a function, not worth its time for a few samples."""

    def __init__(
        self, model: keras.Model, task: Callable[[], Task], *, traced: bool = True,
        stored: ModelRecord | None = None,
    ) -> None:  # fmt: skip
        call = partial(model, training=False)
        super().__init__(tf.function(call) if traced else call, task, stored=stored)


def open_inference(path: str, record: ModelRecord) -> TensorFlowInference:
    """Load a `.keras` file."""
    stored = record if record.inputs == "stored" else None
    task = partial(load_task, record.task, DataInfo.of_record(record), record.rebuilt)
    return TensorFlowInference(load_model(path, record.task), task, stored=stored)
