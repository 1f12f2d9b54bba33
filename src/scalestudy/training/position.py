"""The position of a run, from which it continues, and what must be unchanged for that."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from scalestudy.config.point import Point
from scalestudy.data.split import Split
from scalestudy.engines.interface import Variable


@dataclass(frozen=True)
class Position:
    """The position of a run. Times are in seconds.

    Attributes:
        epoch: Completed epochs; all of them after training.
        step: Completed steps of the current epoch.
        updates: Optimizer steps in total.
        samples: Samples processed in the current epoch.
        losses: Sum of losses of the current epoch for each process.
        spent: Training time of the current epoch.
        waited: Part of `spent` spent waiting for input.
        elapsed: Training time of the completed epochs.
        restarts: How often the run continued from a checkpoint.
        wall: Wall-clock time of the run.
        phases: `wall` by phase.
        usage: Resources used by each process (`utilisation.Usage`); empty if not measured.
        began: Unix time at which the run's first process started.
        hosts: Names of the nodes that the run has used.
    """

    epoch: int = 0
    step: int = 0
    updates: int = 0
    samples: int = 0
    losses: tuple[float, ...] = ()
    spent: float = 0.0
    waited: float = 0.0
    elapsed: float = 0.0
    restarts: int = 0
    wall: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    usage: tuple[tuple[float, ...], ...] = ()
    began: float = 0.0
    hosts: tuple[str, ...] = ()

    @property
    def mark(self) -> tuple[int, int, int]:
        """Epoch, step and updates, which identify a checkpoint within its run."""
        return self.epoch, self.step, self.updates


def fingerprint(point: Point, split: Split, variables: Sequence[Variable]) -> str:
    """Return a digest of all that must be unchanged to continue a run: point, samples and variables."""
    digest = hashlib.sha256()
    settings = point.identity() | {"implementation": point.implementation}
    shapes = [(variable.dtype, variable.shape) for variable in variables]
    text = json.dumps([settings, shapes], sort_keys=True)
    digest.update(text.encode())
    for rows in (split.train, split.validation, split.test):
        of_part = np.ascontiguousarray(rows, np.int64).tobytes()
        # With an end: a sample that moved from one part to the next is another split.
        digest.update(of_part + b"|")
    return digest.hexdigest()
