"""All that a run has computed, of all processes, as one list of arrays; and the proof that workers agree."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.engines.base import Trainer, Values
from scalestudy.engines.group import Group


def gathered(trainer: Trainer, group: Group) -> list[NDArray[Any]]:
    """The values of all variables, those that each worker keeps for itself last; on every rank.

    Returns:
        Values of the common variables, then of the others, each of shape [copies in all processes, ...].
    """
    common, own = trainer.values()
    return [*common, *group.gather(own)]


def scattered(values: Sequence[NDArray[Any]], trainer: Trainer, group: Group) -> Values:
    """This process's part of what `gathered` gave, perhaps to another process."""
    common = sum(not variable.own for variable in trainer.variables)
    mine = [np.split(rows, group.size)[group.rank] for rows in values[common:]]
    return Values(list(values[:common]), mine)


def alike(trainer: Trainer, group: Group) -> bool:
    """Whether all processes have the same values of all variables, by digests of 32 bytes each."""
    common, own = trainer.values()
    (rows,) = group.gather([_digest([*common, *own])[None]])
    return len(np.unique(rows, axis=0)) == 1


def digests(trainer: Trainer, group: Group) -> list[str]:
    """SHA-256 over all weights, one for each copy of the model among all processes.

    The copies prove themselves equal by their digests being equal.
    """
    (rows,) = group.gather([np.stack([_digest(copy) for copy in trainer.weights()])])
    return [row.tobytes().hex() for row in rows]


def _digest(values: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
    digest = hashlib.sha256()
    for value in values:
        digest.update(np.ascontiguousarray(value).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)
