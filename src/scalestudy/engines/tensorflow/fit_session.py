"""Keras's `fit` and `evaluate` with batches divided among the workers of a group, and `predict`."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from scalestudy.config.objectives import warning_of
from scalestudy.engines.group import Group, Joined
from scalestudy.engines.keras.keras_trainer import share_values
from scalestudy.engines.keras.private import (
    all_layers,
    build_from,
    compile_arguments,
    compiled_of,
    epoch_iterator,
    epochs_by,
    first_epoch,
    replace,
    settable_rate,
)
from scalestudy.engines.tensorflow.fit_rows import BatchForm, FitBatch, WorkerRows
from scalestudy.engines.tensorflow.fit_step import Steps
from scalestudy.engines.tensorflow.replicas import CompiledReplicas, tensors
from scalestudy.util.errors import UserError

HARMLESS = (
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.TensorBoard,
    keras.callbacks.BackupAndRestore,
    keras.callbacks.CSVLogger,
    keras.callbacks.History,
    keras.callbacks.ProgbarLogger,
    keras.callbacks.RemoteMonitor,
)
"""Keras callbacks that do not change stop, rate or weights after training has begun."""
OF_BATCHES = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")


class SharedDecisions(keras.callbacks.Callback):
    """A callback after the user's callbacks that gives all ranks the decisions of rank 0.

    On other ranks no user callbacks run.

    Args:
        group: The processes.
        callbacks: The user's callbacks on this rank; only those of rank 0 are called.
    """

    def __init__(self, group: Group, callbacks: Sequence[keras.callbacks.Callback]) -> None:
        super().__init__()
        deciding = [callback for callback in callbacks if type(callback) not in HARMLESS]
        batches = any(map(hears_batches, deciding))
        careful, each_batch = group.share(np.array([bool(deciding), batches], np.int64))
        self._group, self._careful, self._each_batch = group, bool(careful), bool(each_batch)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Begin with rank 0's epoch, weights and optimizer, which a callback may have restored."""
        begin = self._group.share(np.array([first_epoch(self.model)], np.int64))
        first_epoch(self.model, int(begin[0]))
        self._agree(weights=True, optimizer=True)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._agree(weights=self._careful)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if self._each_batch:
            self._agree()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._agree(weights=self._careful)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._agree(weights=True)

    def _agree(self, *, weights: bool = False, optimizer: bool = False) -> None:
        rate = settable_rate(getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer))
        mine = np.array([self.model.stop_training, 0.0 if rate is None else float(rate.value)], np.float64)
        stop, agreed = self._group.share(mine)
        self.model.stop_training = bool(stop)
        if rate is not None and float(rate.value) != agreed:
            rate.assign(agreed)
        variables = list(self.model.variables) if weights else []
        variables += self.model.optimizer.variables if optimizer else []
        share_values(self._group, variables)


class Averaging(keras.callbacks.Callback):
    """A callback before the user's callbacks, so that they evaluate and save averaged weights.

    Args:
        average: Sets each worker's own variables to their means; every rank must call it.
    """

    def __init__(self, average: Callable[[], None]) -> None:
        super().__init__()
        self._average = average

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._average()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._average()


def hears_batches(callback: keras.callbacks.Callback) -> bool:
    """Return whether a callback overrides a method that is called for each batch."""
    if isinstance(callback, keras.callbacks.LambdaCallback):
        return any(name in vars(callback) for name in OF_BATCHES)
    plain = keras.callbacks.Callback
    return any(getattr(type(callback), name) is not getattr(plain, name) for name in OF_BATCHES)


DEFAULT_BATCH = 32
"""Keras's default batch size."""
KEPT = "scalestudy_steps"
"""Attribute of a model that holds its compiled functions, as long as the model exists."""
STEPS = ("train_step", "test_step", "compute_loss", "compute_metrics")
FLOATS = ("float16", "bfloat16", "float32", "float64")


class FitSession:
    """Keras's training on several workers; see `Engine.script_session`.

    All workers get the same random seed, so that they shuffle alike. The script may set its own afterwards.
    """

    def __init__(self, joined: Joined) -> None:
        self.group, self._replicas = tensors(joined)
        if self.group.size > 1:
            seed = np.array([int.from_bytes(os.urandom(4), "little")], np.int64)
            keras.utils.set_random_seed(int(self.group.share(seed)[0]))

    def fit(self, model: keras.Model, *data: Any, per_worker: bool, **arguments: Any) -> Any:
        """Run Keras's `fit` on all workers; see `Workers.fit`."""
        callbacks = _listed(arguments.pop("callbacks", None))
        if self.group.rank:
            arguments["verbose"] = 0
        called = callbacks if self.group.rank == 0 else []
        with self._shared(model, per_worker) as shared:
            together = SharedDecisions(self.group, callbacks)
            history = model.fit(*data, callbacks=[Averaging(shared.average), *called, together], **arguments)
            # An optimizer that averages weights has just assigned them.
            shared.begin()
        # Rank 0's history includes the learning rates that its callbacks logged.
        history.history = self.group.share_object(history.history)
        if self.group.rank == 0:
            warn_of_moving_statistics(model)
        return history

    def evaluate(self, model: keras.Model, *data: Any, per_worker: bool, **arguments: Any) -> Any:
        """Run Keras's `evaluate` on all workers."""
        if self.group.rank:
            arguments |= {"verbose": 0, "callbacks": None}
        with self._shared(model, per_worker) as shared:
            begin = keras.callbacks.LambdaCallback(on_test_begin=lambda logs: shared.begin())
            arguments["callbacks"] = [begin, *_listed(arguments.get("callbacks"))]
            return model.evaluate(*data, **arguments)

    def predict(self, model: keras.Model, x: Any, **arguments: Any) -> Any:
        """Run Keras's `predict` for all samples in each process."""
        if self.group.rank:
            arguments |= {"verbose": 0, "callbacks": None}
        return model.predict(x, **arguments)

    @contextmanager
    def _shared(self, model: keras.Model, per_worker: bool) -> Iterator["_SharedModel"]:
        """Make the model's `fit` and `evaluate` compute on all workers inside the block."""
        _refuse_other_loops(model)
        shared = _SharedModel(model, self._replicas, per_worker)
        functions = {
            "make_train_function": _nothing,
            "make_test_function": _nothing,
            "train_function": shared.train,
            "test_function": shared.test,
        }
        with replace({model: functions}), epochs_by(shared.epochs):
            yield shared


class _SharedModel:
    """A model while several workers train it; `per_worker` if a batch belongs to one worker, not to all."""

    def __init__(self, model: keras.Model, replicas: CompiledReplicas, per_worker: bool) -> None:
        self._model, self._replicas, self._per_worker = model, replicas, per_worker
        self._local: list[Any] = []
        self._forms: dict[str, Steps] = {}

    def epochs(self, **arguments: Any) -> Any:
        """Return Keras's iterator over epochs, with this worker's rows of each batch."""
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
        return self._forms[str(batches[0].form)].train([batch.call for batch in batches])

    def test(self, batches: Sequence[FitBatch]) -> Any:
        return self._forms[str(batches[0].form)].test([batch.call for batch in batches])

    def begin(self) -> None:
        """Give all workers the values of rank 0's model, which must be built."""
        share_values(self._replicas.group, self._model.variables)

    def average(self) -> None:
        """Set each worker's own variables to their means over workers. Every rank must call this."""
        self._replicas.average(self._local)

    def _build(self, form: BatchForm) -> None:
        """Reuse the functions compiled for this model if nothing has changed; otherwise create new ones."""
        model = self._model
        build_from(model, form.structure)
        compiled = compiled_of(model)
        parts = [model.optimizer, compiled.loss, compiled.metrics, self._replicas, *model.trainable_variables]
        before, local, forms = vars(model).get(KEPT, ([], [], {}))
        if len(before) != len(parts) or any(a is not b for a, b in zip(before, parts, strict=True)):
            local, forms = local_variables(model), {}
            vars(model)[KEPT] = parts, local, forms
        self._local, self._forms = local, forms
        if str(form) not in forms:
            # XLA only if the user requested it; Keras's default is to use it where possible.
            forms[str(form)] = Steps(
                model,
                self._replicas,
                form,
                together=_synchronises(model),
                xla=compile_arguments(model).get("jit_compile") is True,
            )


def warn_of_moving_statistics(model: keras.Model) -> None:
    """Print a warning if batch normalisation still holds much of its initial statistics after training."""
    layers = [layer for layer in all_layers(model) if isinstance(layer, keras.layers.BatchNormalization)]
    kept = max((layer.momentum for layer in layers if layer.trainable), default=0.0)
    updates = int(model.optimizer.iterations.numpy())
    if warning := warning_of(kept**updates, updates):
        print(f"scalestudy: {warning}. Train longer, or lower the momentum of the layers.", flush=True)


def local_variables(model: keras.Model) -> list[Any]:
    """Return the tensors that each worker updates from its own rows, such as moving statistics."""
    layers = all_layers(model)
    frozen = {id(variable) for layer in layers if not layer.trainable for variable in layer.variables}
    free = [variable for variable in model.non_trainable_variables if id(variable) not in frozen]
    return [variable.value for variable in free if variable.dtype in FLOATS]


def _synchronises(model: keras.Model) -> bool:
    norms = [layer for layer in all_layers(model) if isinstance(layer, keras.layers.BatchNormalization)]
    return any(layer.synchronized for layer in norms)


def _refuse_other_loops(model: keras.Model) -> None:
    """Check that a model is compiled and trained by Keras's own step."""
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
    """Replace `make_train_function`, so that Keras does not create its own function."""


def _listed(callbacks: Any) -> list[keras.callbacks.Callback]:
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks = callbacks.callbacks
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks] if callbacks else []
