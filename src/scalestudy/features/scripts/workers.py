"""`scalestudy.workers()`: a script of the user's own, trained by several workers.

    workers = scalestudy.workers()          # before anything computes
    workers.fit(model, x, y, ...)           # instead of model.fit(x, y, ...)
    if workers.is_chief: ...                # around what is to happen once: saving, printing

`scalestudy launch` starts such a script; so do srun and mpirun. Started by itself it is one worker, and all
of this is Keras's own. A script with a training loop of its own gets `LoopWorkers`, which measure it.
"""

import os
import sys
from typing import Any, Literal

import numpy as np

from scalestudy.features.scripts.join import Start, has_own_loop, session_of, start_of
from scalestudy.features.scripts.loop import LoopWorkers
from scalestudy.study.strategies import traits
from scalestudy.util.errors import UserError

Batch = Literal["global", "per-worker"]
RULES = ("none", "linear", "sqrt")


class Workers:
    """The workers of a script, as this process sees them: see `workers`.

    Attributes:
        rank: Of this process, from 0.
        size: Workers, each of which computes its rows of every batch.
        local_rank: Of this process among those of its node.
        is_chief: Whether this is rank 0, which calls callbacks, prints and saves.
        strategy: How the workers combine their gradients.
    """

    def __init__(self, start: Start) -> None:
        placement = start.placement
        self.rank, self.local_rank, self.size = placement.rank, placement.local_rank, start.workers
        self.is_chief, self.strategy = placement.rank == 0, start.strategy
        self._session = session_of(start) if self.size > 1 else None

    def __repr__(self) -> str:
        return f"<worker {self.rank} of {self.size} ({self.strategy})>"

    def fit(self, model: Any, *data: Any, batch: Batch = "global", **arguments: Any) -> Any:
        """Train as `model.fit(*data, **arguments)` does: its arguments, callbacks, history and numbers.

        Every worker gives the same arguments. Each takes its rows of every batch; one of which the workers
        have unequal parts is exact. Callbacks are called on rank 0, and all do as they decide. Every process
        returns the history, and has the trained weights in `model`.

        Args:
            model: Compiled.
            data: As of Keras: x, y.
            batch: What a batch is. "global": that of all workers together, as under TensorFlow's strategies
                and on one worker; so any number of workers computes what one does. "per-worker": each worker
                has one such batch a step, so n workers take n times fewer, n times larger steps.
            arguments: As of Keras.

        Raises:
            UserError: If the model trains itself in a way that cannot be shared, or the workers' data are not
                what they could share.
            RunError: If the workers read different batches.
        """
        per_worker = _is_per_worker(batch)
        if self._session is None:
            return model.fit(*data, **arguments)
        return self._session.fit(model, *data, per_worker=per_worker, **arguments)

    def evaluate(self, model: Any, *data: Any, batch: Batch = "global", **arguments: Any) -> Any:
        """Evaluate as `model.evaluate(*data, **arguments)` does, each sample once; the same on every process.

        Args:
            model: Compiled.
            data: As of Keras.
            batch: As in `fit`.
            arguments: As of Keras.
        """
        per_worker = _is_per_worker(batch)
        if self._session is None:
            return model.evaluate(*data, **arguments)
        return self._session.evaluate(model, *data, per_worker=per_worker, **arguments)

    def predict(self, model: Any, x: Any, **arguments: Any) -> Any:
        """The outputs of `model.predict(x, **arguments)`, for all samples, on every process."""
        if self._session is None:
            return model.predict(x, **arguments)
        return self._session.predict(model, x, **arguments)

    def scaled(self, rate: float, rule: str = "linear") -> float:
        """A learning rate that was chosen for one worker's batch, for a batch of all workers.

        It goes with `batch="per-worker"`; with a global batch the rate stays as it is.

        Args:
            rate: For one worker.
            rule: "linear": times the workers (Goyal et al. 2017, arXiv:1706.02677), with a warm-up. "sqrt":
                times the square root of that (Krizhevsky 2014, arXiv:1404.5997). "none": as it is.
        """
        from scalestudy.training.rates import peak_rate

        if rule not in RULES:
            raise UserError(f"one of the rules {', '.join(RULES)}", repr(rule), "Write one of them.")
        return peak_rate(rate, self.size, rule)

    def broadcast(self, value: Any) -> Any:
        """What rank 0 has, on every process: anything that can be pickled. All must ask."""
        return value if self._session is None else self._session.group.share_object(value)

    def barrier(self) -> None:
        """Wait until all processes have come so far. All must ask."""
        if self._session is not None:
            self._session.group.host_sum(np.zeros(1))


_made: list[Workers | LoopWorkers] = []


def workers(strategy: str | None = None) -> Any:
    """The workers of this script: call it once, before TensorFlow computes anything.

    They are `LoopWorkers` where the script trains in a loop of its own, as PyTorch's do, else `Workers`.

    Under `scalestudy launch`, srun or mpirun the processes find each other here. Started by itself, a script
    is one worker.

    Args:
        strategy: How the workers combine their gradients, where `scalestudy launch` has not said: "horovod"
            or "multiworker"; when None the latter, or that of the framework whose loop the script has.

    Raises:
        UserError: If the workers cannot be what is asked for, or TensorFlow has computed already.
        RunError: If they do not find each other.
    """
    if not _made:
        start = start_of(os.environ, strategy, sys.modules)
        _made.append(LoopWorkers(start) if has_own_loop(traits(start.strategy)) else Workers(start))
    return _made[0]


def joined_already() -> bool:
    """Whether the script has asked for its workers."""
    return bool(_made)


def finish() -> None:
    """The script has come to its end: what it has measured becomes a result."""
    for made in _made:
        if isinstance(made, LoopWorkers):
            made.finish()


def _is_per_worker(batch: str) -> bool:
    if batch not in ("global", "per-worker"):
        raise UserError('batch="global" or batch="per-worker"', f"batch={batch!r}", "Write one of them.")
    return batch == "per-worker"
