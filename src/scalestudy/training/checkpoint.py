"""Checkpoints: the file from which a run continues, replaced atomically."""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.training.position import Position
from scalestudy.util.files import replacing


class UnusableError(Exception):
    """The file is not a usable checkpoint of this run. The message gives the reason."""


def write_checkpoint(
    path: Path,
    position: Position,
    values: Sequence[NDArray[Any]],
    fingerprint: str,
) -> None:
    """Replace the checkpoint at `path` atomically: it stays complete even if this process is killed."""
    arrays = {f"value_{index}": value for index, value in enumerate(values)}
    # A job may be killed at any moment, also within this write.
    with replacing(path, _temporary(path)) as file:
        place = json.dumps(asdict(position))
        np.savez(
            file,
            place=place,
            fingerprint=fingerprint,
            **arrays,  # type: ignore[arg-type]
        )


def read_position(path: Path, fingerprint: str) -> Position | None:
    """Return the position in the checkpoint at `path`, or None if there is no file.

    Raises:
        UnusableError: If its fingerprint differs, or if the file cannot be read.
    """
    try:
        # Numbers alone: a pickle in the file of another user could run any code.
        with np.load(path, allow_pickle=False) as file:
            # Settings, data and shapes must be those of this run, or its numbers would mix two.
            if str(file["fingerprint"]) != fingerprint:
                raise UnusableError(
                    "it was made by another point, other data or another model"
                )
            known = json.loads(str(file["place"]))
            # JSON has no tuples.
            known["losses"] = tuple(known["losses"])
            known["hosts"] = tuple(known["hosts"])
            known["usage"] = tuple(map(tuple, known.get("usage", ())))
            return Position(**known)
    except FileNotFoundError:
        return None
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        zipfile.BadZipFile,
    ) as error:
        raise UnusableError(f"it cannot be read: {error}") from error


def read_values(path: Path) -> list[NDArray[Any]]:
    """Return the values of all variables, as passed to `write_checkpoint`."""
    with np.load(path, allow_pickle=False) as file:
        # All but the place and the fingerprint.
        count = len(file.files) - 2
        return [file[f"value_{index}"] for index in range(count)]


def remove_checkpoint(path: Path) -> None:
    """Remove the checkpoint and the temporary file of an interrupted write."""
    path.unlink(missing_ok=True)
    _temporary(path).unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.half")
