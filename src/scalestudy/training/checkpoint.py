"""Checkpoints: the file from which a run continues, and the values of all processes in it."""

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.config.point import Point
from scalestudy.data.split import Split
from scalestudy.engines.group import Group
from scalestudy.engines.interface import Trainer, Values, Variable
from scalestudy.util.files import replacing


def gathered(trainer: Trainer, group: Group) -> list[NDArray[Any]]:
    """Gather the values of all variables on every rank.

    Returns:
        Values of the common variables, then of the variables that each worker has for itself, each of these
        of shape [copies in all processes, ...].
    """
    common, own = trainer.values()
    return [*common, *group.gather(own)]


def scattered(values: Sequence[NDArray[Any]], trainer: Trainer, group: Group) -> Values:
    """Return this process's part of what `gathered` returned, possibly in another process."""
    common = sum(not variable.own for variable in trainer.variables)
    mine = [np.split(rows, group.size)[group.rank] for rows in values[common:]]
    return Values(list(values[:common]), mine)


def equal_on_all_ranks(trainer: Trainer, group: Group) -> bool:
    """Return whether all processes have equal values of all variables, by comparing 32-byte digests."""
    common, own = trainer.values()
    (rows,) = group.gather([_digest([*common, *own])[None]])
    return len(np.unique(rows, axis=0)) == 1


def digests(trainer: Trainer, group: Group) -> list[str]:
    """Return the SHA-256 of all weights for each copy of the model in all processes.

    Equal digests prove that the copies are equal.
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
        usage: Resources used by each process (`measure.usage`); empty if not measured.
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


class UnusableError(Exception):
    """The file is not a usable checkpoint of this run. The message gives the reason."""


def fingerprint(point: Point, split: Split, variables: Sequence[Variable]) -> str:
    """Return a digest of all that must be unchanged to continue a run: point, samples and variables."""
    digest = hashlib.sha256()
    settings = point.identity() | {"implementation": point.implementation}
    shapes = [(variable.dtype, variable.shape) for variable in variables]
    digest.update(json.dumps([settings, shapes], sort_keys=True).encode())
    for rows in (split.train, split.validation, split.test):
        digest.update(np.ascontiguousarray(rows, np.int64).tobytes() + b"|")
    return digest.hexdigest()


def write(path: Path, position: Position, values: Sequence[NDArray[Any]], fingerprint: str) -> None:
    """Replace the checkpoint at `path` atomically: it stays complete even if this process is killed."""
    arrays = {f"value_{index}": value for index, value in enumerate(values)}
    with replacing(path, _temporary(path)) as file:
        np.savez(file, place=json.dumps(asdict(position)), fingerprint=fingerprint, **arrays)  # type: ignore[arg-type]


def read_position(path: Path, fingerprint: str) -> Position | None:
    """Return the position in the checkpoint at `path`, or None if there is no file.

    Raises:
        UnusableError: If its fingerprint differs, or if the file cannot be read.
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
    """Return the values of all variables, as passed to `write`."""
    with np.load(path, allow_pickle=False) as file:
        return [file[f"value_{index}"] for index in range(len(file.files) - 2)]


def remove(path: Path) -> None:
    """Remove the checkpoint and the temporary file of an interrupted write."""
    path.unlink(missing_ok=True)
    _temporary(path).unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.half")
