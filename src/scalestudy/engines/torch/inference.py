"""A trained model in a process of its own, computed by PyTorch."""

from collections.abc import Callable
from functools import partial

import keras
import torch

from scalestudy.engines.keras.inference import KerasInference
from scalestudy.engines.keras.model_files import load_model
from scalestudy.study.model_record import ModelRecord
from scalestudy.tasks.base import DataInfo, Task
from scalestudy.tasks.load import load_task
from scalestudy.tasks.module import ModuleModel


class TorchInference(KerasInference):
    """See `Inference`."""

    def __init__(
        self, model: keras.Model, task: Callable[[], Task], *, stored: ModelRecord | None = None
    ) -> None:
        super().__init__(torch.no_grad()(partial(model, training=False)), task, stored=stored)
        if isinstance(model, ModuleModel):
            self.shown = model.probabilities  # type: ignore[method-assign]


def open_inference(path: str, record: ModelRecord) -> TorchInference:
    """Load a `.keras` file, or the state dict of a module, which its task builds again."""
    if path.endswith(".pt"):
        built = built_module(path, record)
        return TorchInference(built.model, lambda: built)
    stored = record if record.inputs == "stored" else None
    task = partial(load_task, record.task, DataInfo.of_record(record), record.rebuilt)
    return TorchInference(load_model(path, record.task), task, stored=stored)


def built_module(path: str, record: ModelRecord) -> Task:
    """The task of a module whose state dict is at `path`, with these weights.

    Raises:
        UserError: If they are another module's.
    """
    task = load_task(record.task, DataInfo.of_record(record), record.rebuilt)
    task.model.restore(path)
    return task
