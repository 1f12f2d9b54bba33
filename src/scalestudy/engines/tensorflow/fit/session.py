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
    compiled_of,
    epoch_iterator,
    replaced,
)
from scalestudy.engines.tensorflow.fit.copies import Computing
from scalestudy.engines.tensorflow.fit.predict import predicted
from scalestudy.engines.tensorflow.fit.refusals import refuse_other_loops, uses_xla
from scalestudy.engines.tensorflow.fit.rows import Batch, Form, Shared
from scalestudy.engines.tensorflow.fit.step import Steps
from scalestudy.engines.tensorflow.fit.together import (
    Before,
    Together,
    hears_batches,
    share_values,
    shared_history,
)
from scalestudy.engines.tensorflow.private import epochs_by
from scalestudy.engines.tensorflow.strategies.replicas import tensors

DEFAULT_BATCH = 32
"""Keras's."""
KEPT = "scalestudy_steps"
"""Attribute of a model that holds what was compiled for it, as long as the model lives."""


class Session:
    """What several workers share of Keras's training.

    Args:
        joined: The workers, and this process's part among them.
    """

    def __init__(self, joined: Joined) -> None:
        self._group, self._replicas = tensors(joined)

    def share_seed(self) -> None:
        """Draw from one seed on all: what is shuffled is alike. The script may set its own afterwards."""
        if self._group.size > 1:
            seed = np.array([int.from_bytes(os.urandom(4), "little")], np.int64)
            keras.utils.set_random_seed(int(self._group.share(seed)[0]))

    def fit(self, model: keras.Model, *data: Any, per_worker: bool, **arguments: Any) -> Any:
        """Keras's `fit`; see `Workers.fit`."""
        callbacks = _listed(arguments.pop("callbacks", None))
        if self._group.rank:
            arguments["verbose"] = 0
        own = callbacks if self._group.rank == 0 else []
        with self._shared(model, per_worker) as shared:
            together = Together(self._group, callbacks, shared.push)
            before = Before(shared.average, shared.pull, batches=any(map(hears_batches, own)))
            history = model.fit(*data, callbacks=[before, *own, together], **arguments)
            # Under an optimizer that averages weights, Keras has just set them.
            share_values(self._group, model.variables)
        history.history = shared_history(self._group, history.history)
        return history

    def evaluate(self, model: keras.Model, *data: Any, per_worker: bool, **arguments: Any) -> Any:
        """Keras's `evaluate`."""
        if self._group.rank:
            arguments |= {"verbose": 0, "callbacks": None}
        with self._shared(model, per_worker) as shared:
            told = keras.callbacks.LambdaCallback(on_test_begin=lambda logs: shared.begin())
            arguments["callbacks"] = [told, *_listed(arguments.get("callbacks"))]
            return model.evaluate(*data, **arguments)

    def predict(self, model: keras.Model, x: Any, **arguments: Any) -> Any:
        """Keras's `predict`, each process computing its rows of every batch; all get all."""
        if self._group.size == 1:
            return model.predict(x, **arguments)
        if self._group.rank:
            arguments |= {"verbose": 0, "callbacks": None}
        return predicted(self._group, model, x, arguments)

    @contextmanager
    def _shared(self, model: keras.Model, per_worker: bool) -> Iterator["_Model"]:
        """Within, the model's own `fit` and `evaluate` are those of all workers."""
        refuse_other_loops(model)
        shared = _Model(model, Joined(self._group, self._replicas), per_worker)
        own = {
            "make_train_function": _nothing,
            "make_test_function": _nothing,
            "train_function": shared.train,
            "test_function": shared.test,
        }
        with replaced({model: own}), epochs_by(shared.epochs):
            yield shared


class _Model:
    """A model while the workers share it.

    Args:
        model: The user's.
        joined: The workers.
        per_worker: Whether a batch is one worker's, and not that of all.
    """

    def __init__(self, model: keras.Model, joined: Joined, per_worker: bool) -> None:
        self._model, self._per_worker = model, per_worker
        self._group, self._replicas = tensors(joined)
        self._computing: Computing | None = None
        self._forms: dict[str, Steps] = {}

    def epochs(self, **arguments: Any) -> Any:
        """What Keras goes over: its own iterator, with this worker's rows of each batch."""
        arguments.pop("distribute_strategy", None)
        together = self._replicas.workers if self._per_worker else 1
        size, steps = arguments.get("batch_size"), arguments.get("steps_per_epoch")
        if size or not steps:
            arguments["batch_size"] = (size or DEFAULT_BATCH) * together
        iterator = epoch_iterator(**arguments)
        iterator.data_adapter = Shared(iterator.data_adapter, self._replicas, self._group, together=together)
        self._build(iterator.data_adapter.form)
        iterator.reset()
        return iterator

    def train(self, batches: Sequence[Batch]) -> Any:
        """Stands in for Keras's train function."""
        return self._forms[str(batches[0].form)].train([batch.call for batch in batches])

    def test(self, batches: Sequence[Batch]) -> Any:
        """Stands in for Keras's test function."""
        return self._forms[str(batches[0].form)].test([batch.call for batch in batches])

    def begin(self) -> None:
        """Have all workers begin with what rank 0 has; called when the model is built."""
        share_values(self._group, self._model.variables)
        self.push()

    def push(self) -> None:
        """Have the model that computes take what the user's has."""
        if self._computing:
            self._computing.push()

    def pull(self) -> None:
        """Give the user's model what was computed."""
        if self._computing:
            self._computing.pull()

    def average(self) -> None:
        """Set what each worker keeps for itself to its mean over all; every rank must ask."""
        if self._computing:
            self._computing.average()

    def _build(self, form: Form) -> None:
        """Take what was compiled for this model before, if nothing has changed since; else compile it."""
        model = self._model
        build_from(model, form.structure)
        compiled = compiled_of(model)
        known = [model.optimizer, compiled.loss, compiled.metrics, self._group, *model.trainable_variables]
        kept = vars(model).get(KEPT)
        if (
            kept is None
            or len(kept[0]) != len(known)
            or any(a is not b for a, b in zip(kept[0], known, strict=True))
        ):
            kept = known, Computing(model, self._replicas), {}
            vars(model)[KEPT] = kept
        self._computing, self._forms = kept[1:]
        key = str(form)
        if key not in self._forms:
            self._forms[key] = Steps(
                model, self._computing.model, self._computing.optimizer, self._replicas, form,
                together=self._synchronises(), xla=uses_xla(model),
            )  # fmt: skip

    def _synchronises(self) -> bool:
        layers = all_layers(self._model)
        return any(isinstance(each, keras.layers.BatchNormalization) and each.synchronized for each in layers)


def _nothing(force: bool = False) -> None:
    """Keras is to make no function of its own."""


def _listed(callbacks: Any) -> list[keras.callbacks.Callback]:
    """The user's callbacks, however they were given."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks = callbacks.callbacks
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks] if callbacks else []
