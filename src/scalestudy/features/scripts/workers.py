"""`scalestudy.workers()`: a user's own script on several workers.

    workers = scalestudy.workers()          # before anything computes
    workers.fit(model, x, y, ...)           # instead of model.fit(x, y, ...)
    if workers.is_chief: ...                # around work for one process only: saving, printing

Start such a script with `scalestudy launch`, srun or mpirun. Started with python, it is a single worker and
`fit` is Keras's own. A script with its own training loop gets `LoopWorkers`, which measures it.
"""

import os
import sys
from typing import Any, Literal

import numpy as np

from scalestudy.features.scripts.join import Start, has_own_loop, session_of, start_of
from scalestudy.features.scripts.loop import LoopWorkers
from scalestudy.plugins.strategies import traits
from scalestudy.util.errors import UserError

Batch = Literal["global", "per-worker"]
RULES = ("none", "linear", "sqrt")


class Workers:
    """The workers of a script that trains with Keras; returned by `workers`.

    Attributes:
        rank: Rank of this process, from 0.
        size: Number of workers. Each computes its rows of every batch.
        local_rank: Rank of this process among those of its node.
        is_chief: Whether this is rank 0, which calls callbacks, prints and saves.
        strategy: Name of the strategy.
    """

    def __init__(self, start: Start) -> None:
        placement = start.placement
        self.rank, self.local_rank, self.size = placement.rank, placement.local_rank, start.workers
        self.is_chief, self.strategy = placement.rank == 0, start.strategy
        self._session = session_of(start) if self.size > 1 else None

    def __repr__(self) -> str:
        return f"<worker {self.rank} of {self.size} ({self.strategy})>"

    def fit(self, model: Any, *data: Any, batch: Batch = "global", **arguments: Any) -> Any:
        """Train like `model.fit(*data, **arguments)`, with the same callbacks, history and results.

        Every worker passes the same arguments and computes its rows of every batch; uneven batches are exact.
        Callbacks run on rank 0, and all workers follow their decisions. Every process returns the history and
        has the trained weights in `model`.

        Args:
            model: Compiled Keras model.
            data: x, y, as in Keras.
            batch: Whether a batch is "global", that of all workers together, so that any number of workers
                computes the same as one; or "per-worker", so that n workers take n times fewer and n times
                larger steps.
            arguments: Other arguments of `model.fit`.

        Raises:
            UserError: The model has its own training step, or the data cannot be divided between workers.
            RunError: The workers read different batches.
        """
        per_worker = _is_per_worker(batch)
        if self._session is None:
            return model.fit(*data, **arguments)
        return self._session.fit(model, *data, per_worker=per_worker, **arguments)

    def evaluate(self, model: Any, *data: Any, batch: Batch = "global", **arguments: Any) -> Any:
        """Evaluate like `model.evaluate(*data, **arguments)`, each sample once; all processes get the result.

        Args:
            model: Compiled Keras model.
            data: x, y, as in Keras.
            batch: As in `fit`.
            arguments: Other arguments of `model.evaluate`.
        """
        per_worker = _is_per_worker(batch)
        if self._session is None:
            return model.evaluate(*data, **arguments)
        return self._session.evaluate(model, *data, per_worker=per_worker, **arguments)

    def predict(self, model: Any, x: Any, **arguments: Any) -> Any:
        """Return the outputs of `model.predict(x, **arguments)` for all samples, on every process."""
        if self._session is None:
            return model.predict(x, **arguments)
        return self._session.predict(model, x, **arguments)

    def scaled(self, rate: float, rule: str = "linear") -> float:
        """Scale the learning rate of one worker's batch to the batch of all workers.

        Use it with `batch="per-worker"`; with a global batch the learning rate stays the same.

        Args:
            rate: Learning rate for one worker.
            rule: "linear" multiplies by the number of workers (Goyal et al. 2017, arXiv:1706.02677; add a
                warm-up), "sqrt" by its square root (Krizhevsky 2014, arXiv:1404.5997), "none" by 1.
        """
        from scalestudy.training.rates import peak_rate

        if rule not in RULES:
            raise UserError(f"one of the rules {', '.join(RULES)}", repr(rule), "Use one of these.")
        return peak_rate(rate, self.size, rule)

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's value, of numbers, text, lists and dicts, on every process.

        All processes must call this.
        """
        return value if self._session is None else self._session.group.share_object(value)

    def barrier(self) -> None:
        """Wait until all processes have called this."""
        if self._session is not None:
            self._session.group.host_sum(np.zeros(1))


_made: list[Workers | LoopWorkers] = []


def workers(strategy: str | None = None) -> Any:
    """Join the workers of this script. Call it once, before TensorFlow computes anything.

    Under `scalestudy launch`, srun or mpirun, the processes find each other here. A script that is started
    with python is a single worker.

    Args:
        strategy: "horovod" or "multiworker", unless `scalestudy launch` sets it. If None, "multiworker", or
            the strategy of the framework whose training loop the script has.

    Returns:
        `LoopWorkers` if the script has its own training loop, like PyTorch scripts, else `Workers`.

    Raises:
        UserError: The strategy cannot be used, or TensorFlow has already computed something.
        RunError: The processes do not find each other.
    """
    if not _made:
        start = start_of(os.environ, strategy, sys.modules)
        _made.append(LoopWorkers(start) if has_own_loop(traits(start.strategy)) else Workers(start))
    return _made[0]


def joined_already() -> bool:
    """Whether the script has called `workers`."""
    return bool(_made)


def finish() -> None:
    """Write the result of a measured script, at its end."""
    for made in _made:
        if isinstance(made, LoopWorkers):
            made.finish()


def _is_per_worker(batch: str) -> bool:
    if batch not in ("global", "per-worker"):
        raise UserError('batch="global" or batch="per-worker"', f"batch={batch!r}", "Write one of them.")
    return batch == "per-worker"
