"""The model of a training as a file: the model that the task makes, with the trained weights."""

from collections.abc import Callable, Sequence
from typing import Any

import keras

from scalestudy.engines.keras.inference import KerasInference
from scalestudy.engines.keras.model_files import load_weights
from scalestudy.engines.keras.state import KerasState
from scalestudy.tasks.task import Task
from scalestudy.tasks.trial import prove_savable


class KerasModelFile:
    """The model of a training as a `.keras` file, or a module's as a `.pt` file; see `ModelFile`.

    Args:
        name: Name or file of the task, for messages.
        shape: Height, width and channels of its inputs, for messages.
        build: Builds the task, without layers that are adapted to several workers.
        model: The model that is trained.
        state: Its values.
        within: The argument `within` of `KerasInference`.
    """

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        build: Callable[[], Task],
        model: Any,
        state: KerasState,
        within: Callable[[Any], Any],
    ) -> None:
        self._name = name
        self._shape = shape
        self._build = build
        self._model = model
        self._state = state
        self._within = within
        # Built when it is first needed: most ranks never save.
        self._plain: Task | None = None
        self.suffix = ".pt"
        if isinstance(model, keras.Model):
            self.suffix = ".keras"

    def prove_savable(self, path: str) -> None:
        plain = self.plain()
        prove_savable(plain.model, path, plain.definitions)

    def save(self, path: str) -> None:
        self.plain().model.save(path)

    def restore(self, path: str) -> None:
        if not isinstance(self._model, keras.Model):
            self._model.restore(path)
            return
        self._plain = self._plain or self._build()
        load_weights(self._plain.model, path, self._name, self._shape)
        self._model.set_weights(self._plain.model.get_weights())

    def inference(self) -> KerasInference:
        plain = self.plain()
        return KerasInference(plain.model, lambda: plain, self._within)

    def plain(self) -> Task:
        """Return the task without adapted layers, with the current weights."""
        self._plain = self._plain or self._build()
        weights = self._plain.model.weights
        for variable, value in zip(weights, self._state.weights()[0], strict=True):
            variable.assign(value)
        return self._plain
