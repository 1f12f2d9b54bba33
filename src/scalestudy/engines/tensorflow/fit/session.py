"""`fit`, `evaluate` and `predict` of Keras, with their batches shared by the workers of a group."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from scalestudy.engines.group import Joined
from scalestudy.engines.keras.private import (
    all_layers,
    build_from,
    compile_words,
    compiled_of,
    epoch_iterator,
    epochs_by,
    replaced,
)
from scalestudy.engines.tensorflow.fit.rows import BatchForm, FitBatch, WorkerRows
from scalestudy.engines.tensorflow.fit.step import Steps
from scalestudy.engines.tensorflow.fit.together import Averaging, Together
from scalestudy.engines.tensorflow.strategies.replicas import CompiledReplicas, share_values, tensors
from scalestudy.util.errors import UserError

DEFAULT_BATCH = 32
"""Keras's."""
KEPT = "scalestudy_steps"
"""Attribute of a model that holds what was compiled for it, as long as the model lives."""
STEPS = ("train_step", "test_step", "compute_loss", "compute_metrics")
FLOATS = ("float16", "bfloat16", "float32", "float64")


class FitSession:
    """What several workers share of Keras's training; see `Engine.script_session`.

    They draw from one seed, so that what is shuffled is alike; the script may set its own afterwards.
    """

    def __init__(self, joined: Joined) -> None:
        self.group, self._replicas = tensors(joined)
        if self.group.size > 1:
            seed = np.array([int.from_bytes(os.urandom(4), "little")], np.int64)
            keras.utils.set_random_seed(int(self.group.share(seed)[0]))

    def fit(self, model: keras.Model, *data: Any, per_worker: bool, **arguments: Any) -> Any:
        """Keras's `fit`; see `Workers.fit`."""
        callbacks = _listed(arguments.pop("callbacks", None))
        if self.group.rank:
            arguments["verbose"] = 0
        called = callbacks if self.group.rank == 0 else []
        with self._shared(model, per_worker) as shared:
            together = Together(self.group, callbacks)
            history = model.fit(*data, callbacks=[Averaging(shared.average), *called, together], **arguments)
            # Under an optimizer that averages weights, Keras has just set them.
            shared.begin()
        # Rank 0's, which knows the rates that its callbacks have put down.
        history.history = self.group.share_object(history.history)
        return history

    def evaluate(self, model: keras.Model, *data: Any, per_worker: bool, **arguments: Any) -> Any:
        """Keras's `evaluate`."""
        if self.group.rank:
            arguments |= {"verbose": 0, "callbacks": None}
        with self._shared(model, per_worker) as shared:
            begin = keras.callbacks.LambdaCallback(on_test_begin=lambda logs: shared.begin())
            arguments["callbacks"] = [begin, *_listed(arguments.get("callbacks"))]
            return model.evaluate(*data, **arguments)

    def predict(self, model: keras.Model, x: Any, **arguments: Any) -> Any:
        """Keras's `predict`, of all samples in each process."""
        if self.group.rank:
            arguments |= {"verbose": 0, "callbacks": None}
        return model.predict(x, **arguments)

    @contextmanager
    def _shared(self, model: keras.Model, per_worker: bool) -> Iterator["_SharedModel"]:
        """Within, the model's own `fit` and `evaluate` are those of all workers."""
        _refuse_other_loops(model)
        shared = _SharedModel(model, self._replicas, per_worker)
        functions = {
            "make_train_function": _nothing, "make_test_function": _nothing,
            "train_function": shared.train, "test_function": shared.test,
        }  # fmt: skip
        with replaced({model: functions}), epochs_by(shared.epochs):
            yield shared


class _SharedModel:
    """A model while the workers share it; `per_worker` where a batch is one worker's, and not that of all."""

    def __init__(self, model: keras.Model, replicas: CompiledReplicas, per_worker: bool) -> None:
        self._model, self._replicas, self._per_worker = model, replicas, per_worker
        self._local: list[Any] = []
        self._forms: dict[str, Steps] = {}

    def epochs(self, **arguments: Any) -> Any:
        """What Keras goes over: its own iterator, with this worker's rows of each batch."""
        arguments.pop("distribute_strategy", None)
        together = self._replicas.workers if self._per_worker else 1
        size, steps = arguments.get("batch_size"), arguments.get("steps_per_epoch")
        if size or not steps:
            arguments["batch_size"] = (size or DEFAULT_BATCH) * together
        iterator = epoch_iterator(**arguments)
        iterator.data_adapter = WorkerRows(iterator.data_adapter, self._replicas, together=together)
        self._build(iterator.data_adapter.form)
        iterator.reset()
        return iterator

    def train(self, batches: Sequence[FitBatch]) -> Any:
        """Stands in for Keras's train function."""
        return self._forms[str(batches[0].form)].train([batch.call for batch in batches])

    def test(self, batches: Sequence[FitBatch]) -> Any:
        """Stands in for Keras's test function."""
        return self._forms[str(batches[0].form)].test([batch.call for batch in batches])

    def begin(self) -> None:
        """Give all workers the model that rank 0 has; it must be built."""
        share_values(self._replicas.group, [variable.value for variable in self._model.variables])

    def average(self) -> None:
        """Set what each worker keeps for itself to its mean over all; every rank must ask."""
        self._replicas.average(self._local)

    def _build(self, form: BatchForm) -> None:
        """Take what was compiled for this model before, if nothing has changed since; else compile it."""
        model = self._model
        build_from(model, form.structure)
        compiled = compiled_of(model)
        parts = [
            model.optimizer, compiled.loss, compiled.metrics, self._replicas, *model.trainable_variables
        ]  # fmt: skip
        before, local, forms = vars(model).get(KEPT, ([], [], {}))
        if len(before) != len(parts) or any(a is not b for a, b in zip(before, parts, strict=True)):
            local, forms = local_variables(model), {}
            vars(model)[KEPT] = parts, local, forms
        self._local, self._forms = local, forms
        if str(form) not in forms:
            # XLA only where it was asked for: Keras takes it unasked where it can.
            forms[str(form)] = Steps(
                model, self._replicas, form, together=_synchronises(model),
                xla=compile_words(model).get("jit_compile") is True,
            )  # fmt: skip


def local_variables(model: keras.Model) -> list[Any]:
    """Tensors that each worker moves by its own rows: moving statistics, and what is like them."""
    layers = all_layers(model)
    frozen = {id(variable) for layer in layers if not layer.trainable for variable in layer.variables}
    free = [variable for variable in model.non_trainable_variables if id(variable) not in frozen]
    return [variable.value for variable in free if variable.dtype in FLOATS]


def _synchronises(model: keras.Model) -> bool:
    norms = [layer for layer in all_layers(model) if isinstance(layer, keras.layers.BatchNormalization)]
    return any(layer.synchronized for layer in norms)


def _refuse_other_loops(model: keras.Model) -> None:
    """Refuse a model that trains itself in another way than Keras does."""
    if not getattr(model, "compiled", False):
        raise UserError("a compiled model", "a model that is not compiled", "Call model.compile(...) first.")
    custom = [name for name in STEPS if getattr(type(model), name) is not getattr(keras.Model, name)]
    if custom:
        raise UserError(
            "a model trained by Keras's own step, whose gradients are summed over the workers",
            f"{type(model).__name__} with its own {custom[0]}",
            "Give its loss and metrics to compile(), or write it as a task with its own step.",
        )
    if model.run_eagerly:
        raise UserError(
            "compile(run_eagerly=False) on several workers",
            "run_eagerly=True",
            "Debug on one worker: python SCRIPT.",
        )


def _nothing(force: bool = False) -> None:
    """Keras is to make no function of its own."""


def _listed(callbacks: Any) -> list[keras.callbacks.Callback]:
    """The user's callbacks, however they were given."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks = callbacks.callbacks
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks] if callbacks else []
