"""The file that a run goes on from, and the values of all processes in it."""

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.data.splits.split import Split
from scalestudy.engines.base import Trainer, Values, Variable
from scalestudy.engines.group import Group
from scalestudy.study.point import Point
from scalestudy.util.files import replacing


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


@dataclass(frozen=True)
class Position:
    """Where a run is. Times in seconds.

    Attributes:
        epoch: Epochs behind it; all of them once training is over.
        step: Steps done of the epoch under way.
        updates: Optimizer steps in all.
        samples: Samples of the epoch under way.
        losses: Sum of losses of the epoch under way, of each process.
        spent: Training time of the epoch under way.
        waited: Part of `spent` that went by waiting for input.
        elapsed: Training time of the epochs behind it.
        restarts: How often the run went on from a checkpoint.
        wall: Wall-clock time of the run.
        phases: Where `wall` went.
        usage: What each process has used (`measure.usage`); empty where nobody looked.
        began: Unix time at which the run's first process began.
        hosts: Names of the nodes that it has run on.
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
        """What tells two checkpoints of a run apart: epoch, step and updates."""
        return self.epoch, self.step, self.updates


class UnusableError(Exception):
    """A file that is no checkpoint of this run; the message says why."""


def fingerprint(point: Point, split: Split, variables: Sequence[Variable]) -> str:
    """A digest of what must be the same for a run to go on: the point, its samples, its variables."""
    digest = hashlib.sha256()
    settings = point.identity() | {"implementation": point.implementation}
    shapes = [(variable.dtype, variable.shape) for variable in variables]
    digest.update(json.dumps([settings, shapes], sort_keys=True).encode())
    for rows in (split.train, split.validation, split.test):
        digest.update(np.ascontiguousarray(rows, np.int64).tobytes() + b"|")
    return digest.hexdigest()


def write(path: Path, position: Position, values: Sequence[NDArray[Any]], fingerprint: str) -> None:
    """Replace the checkpoint at `path`; a reader, or a kill at any moment, never finds half of one."""
    arrays = {f"value_{index}": value for index, value in enumerate(values)}
    with replacing(path, _temporary(path)) as file:
        np.savez(file, place=json.dumps(asdict(position)), fingerprint=fingerprint, **arrays)  # type: ignore[arg-type]


def read_position(path: Path, fingerprint: str) -> Position | None:
    """Where the run of this `fingerprint` was; None without a checkpoint.

    Raises:
        UnusableError: If the file is another run's, or cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            if str(file["fingerprint"]) != fingerprint:
                raise UnusableError("it was made by another point, other data or another model")
            known = json.loads(str(file["place"]))
            usage = tuple(map(tuple, known.get("usage", ())))
            tuples = {key: tuple(known[key]) for key in ("losses", "hosts")}
            return Position(**{**known, **tuples, "usage": usage})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UnusableError(f"it cannot be read: {error}") from error


def read_values(path: Path) -> list[NDArray[Any]]:
    """The values of all variables, as they were given to `write`."""
    with np.load(path, allow_pickle=False) as file:
        return [file[f"value_{index}"] for index in range(len(file.files) - 2)]


def remove(path: Path) -> None:
    """Remove the checkpoint, and what a kill has left of a half-written one."""
    path.unlink(missing_ok=True)
    _temporary(path).unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.half")
