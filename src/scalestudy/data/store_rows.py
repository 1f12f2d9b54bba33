"""The rows of a set, written: as two arrays, or encoded."""

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from scalestudy.data.array_file import ArrayFile
from scalestudy.data.encoding import encode
from scalestudy.data.shards import ShardWriter
from scalestudy.data.source import side_by_side

Array = npt.NDArray[Any]
Storage = Literal["arrays", "encoded"]


class Row(NamedTuple):
    """A sample as it is stored: its input [H, W, C], its target [H, W] or [1], and the file of its image."""

    image: Array
    target: Array
    file: Path | None = None


class Form(NamedTuple):
    """Shape (N, ...) and type of all inputs, or of all targets."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def store(storage: Storage, folder: Path, rows: Iterable[Row], inputs: Form, targets: Form) -> dict[str, str]:
    """Write all rows into an empty folder. Classes are an array always: they are small.

    Returns:
        SHA-256 of each file by its name.

    Raises:
        OSError: The folder cannot take them.
    """
    with ExitStack() as files:

        def column(name: str, form: Form) -> ArrayFile | ShardWriter:
            encoded = storage == "encoded" and len(form.shape) > 1
            made = ShardWriter(folder, name) if encoded else ArrayFile(folder, name, *form)
            files.callback(made.close)
            return made

        images, labels = column("inputs", inputs), column("targets", targets)
        ready = side_by_side(_encoded, rows) if storage == "encoded" else map(_plain, rows)
        for image, target in ready:
            images.write(image)
            labels.write(target)
        return images.finish() | labels.finish()


def _plain(row: Row) -> tuple[Any, Any]:
    return row.image.data, row.target.data


def _encoded(row: Row) -> tuple[Any, Any]:
    own = None
    if row.file is not None:
        with suppress(OSError):  # it is kept only where it is what was read
            own = row.file.read_bytes()
    return encode(row.image, own), row.target.data if row.target.ndim == 1 else encode(row.target)
