"""What all ranks agree on: values of variables, digests of weights, and the decisions of callbacks."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.group import Group
from scalestudy.engines.interface import Trainer, Values


class CallbackDecisions:
    """Runs a task's callbacks on rank 0 only, so that no file is written twice, and shares their decisions.

    After each epoch all ranks receive from rank 0 whether to stop, the learning rate if a callback may set
    it, and the weights, which a callback such as early stopping may have changed. They also receive the
    rate before each epoch, where schedules set it, and the weights before the first epoch, where callbacks
    restore them.
    """

    def __init__(
        self,
        trainer: Trainer,
        group: Group,
        *,
        epochs: int,
        steps: int,
    ) -> None:
        self._trainer = trainer
        self._group = group
        self._active = trainer.has_callbacks
        self._callbacks = None
        if self._active and group.rank == 0:
            self._callbacks = trainer.callbacks(epochs=epochs, steps=steps)

    def begin(self) -> None:
        """Call the callbacks before training."""
        if self._callbacks:
            self._callbacks.on_train_begin()
        if self._active:
            self._agree(stop=False)
            self._share_weights()

    def epoch_begin(self, epoch: int) -> None:
        """Call the callbacks before `epoch`, counted from 0."""
        if self._callbacks:
            self._callbacks.on_epoch_begin(epoch)
        if self._active:
            self._agree(stop=False)

    def batch_end(self, step: int) -> None:
        """Call the callbacks after the call that ends with step `step` of the epoch."""
        if self._callbacks:
            self._callbacks.on_train_batch_end(step)

    def epoch_end(self, epoch: int, logs: dict[str, float]) -> bool:
        """Call the callbacks after an epoch. Return whether all ranks must stop."""
        if not self._active:
            return False
        # Callbacks read and may store the weights of all workers.
        self._trainer.state.average()
        asked = False
        if self._callbacks:
            self._callbacks.on_epoch_end(epoch, logs)
            asked = self._trainer.stops
        stop = self._agree(asked)
        self._share_weights()
        return stop

    def end(self, logs: dict[str, float]) -> None:
        """Call the callbacks after training."""
        if self._callbacks:
            self._callbacks.on_train_end(logs)
        if self._active:
            self._share_weights()

    def _agree(self, stop: bool) -> bool:
        # One sum for both decisions; only rank 0 adds to it.
        rate = self._trainer.rate
        first = self._group.rank == 0
        mine = np.zeros(2, np.float64)
        if first:
            mine[:] = stop, rate or 0.0
        asked, agreed = self._group.host_sum(mine)
        if rate is not None and not first:
            self._trainer.set_rate(float(agreed))
        return bool(asked)

    def _share_weights(self) -> None:
        """Give every rank the values of rank 0 if a callback has changed any; most callbacks change none."""
        # Digests are 32 bytes; sharing the values after each epoch would send the whole model.
        if self._group.size > 1 and not equal_on_all_ranks(self._trainer, self._group):
            self._trainer.state.share()


def gather(trainer: Trainer, group: Group) -> list[NDArray[Any]]:
    """Gather the values of all variables on every rank.

    Returns:
        Values of the common variables, then of the variables that each worker has for itself, each of these
        of shape [copies in all processes, ...].
    """
    common, own = trainer.state.values()
    return [*common, *group.gather(own)]


def scatter(values: Sequence[NDArray[Any]], trainer: Trainer, group: Group) -> Values:
    """Return this process's part of what `gather` returned, possibly in another process."""
    own = [variable for variable in trainer.state.variables if variable.own]
    common = len(trainer.state.variables) - len(own)
    mine = []
    for rows in values[common:]:
        of_ranks = np.split(rows, group.size)
        mine.append(of_ranks[group.rank])
    return Values(list(values[:common]), mine)


def equal_on_all_ranks(trainer: Trainer, group: Group) -> bool:
    """Return whether all processes have equal values of all variables, by comparing 32-byte digests."""
    common, own = trainer.state.values()
    mine = _digest([*common, *own])
    (rows,) = group.gather([mine[None]])
    distinct = np.unique(rows, axis=0)
    return len(distinct) == 1


def digests_of_copies(trainer: Trainer, group: Group) -> list[str]:
    """Return the SHA-256 of all weights for each copy of the model in all processes.

    Equal digests prove that the copies are equal.
    """
    mine = [_digest(copy) for copy in trainer.state.weights()]
    (rows,) = group.gather([np.stack(mine)])
    return [row.tobytes().hex() for row in rows]


def digests_of_model(trainer: Trainer) -> tuple[str, str]:
    """Return the SHA-256 of the shapes and types of the weights, and that of their values.

    Runs of one row have the same shapes, and at the same seed the same initial values; else the task depends
    on something that is not part of the study, such as a file that it reads.
    """
    # Of one copy: `digests_of_copies` compares them all.
    weights, *_ = trainer.state.weights()
    shapes = []
    for value in weights:
        shapes.append([*value.shape, value.dtype.name])
    text = json.dumps(shapes)
    of_shapes = hashlib.sha256(text.encode()).hexdigest()
    of_values = _digest(weights).tobytes().hex()
    return of_shapes, of_values


def _digest(values: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
    digest = hashlib.sha256()
    for value in values:
        digest.update(np.ascontiguousarray(value).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)
