"""The files of a prepared set: its rows, sample by sample, and the manifest."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scalestudy.data.images.form import stored_as
from scalestudy.data.sources import left_out
from scalestudy.data.sources.base import Contents, Source, side_by_side
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store.encoded import encode
from scalestudy.data.store.files import ArrayFile, ShardWriter
from scalestudy.data.store.prepared import PREPARED_SCHEMA, Storage
from scalestudy.data.types import IGNORE
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

Array = npt.NDArray[Any]


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
    file = None
    if row.file is not None:
        with suppress(OSError):  # it is kept only where it is what was read
            file = row.file.read_bytes()
    return encode(row.image, file), row.target.data if row.target.ndim == 1 else encode(row.target)


DAMAGED_FILES = "damaged.txt"
"""In a prepared set, all files that it goes without; meta.json has the first of each kind of damage."""
OnProgress = Callable[[int, int], None]


def bytes_of(kind: Kind, contents: Contents) -> int:
    """Bytes of the set's arrays on disk, a little more than they take; encoded it takes less."""
    pixels = contents.input_shape[0] * contents.input_shape[1]
    one = pixels * contents.input_shape[2] * contents.dtype.itemsize + (pixels if kind == "masks" else 4)
    return contents.count * one + 1_000_000


def write_set(
    source: Source,
    contents: Contents,
    folder: Path,
    on_progress: OnProgress | None,
    storage: Storage = "arrays",
) -> None:
    """Write the rows and the manifest of a source into an empty folder.

    Raises:
        UserError: the source is damaged, or gives what it has not announced or what cannot be stored.
        OSError: the folder cannot take it.
    """
    target_shape = contents.input_shape[:2] if source.kind == "masks" else ()
    target_dtype = np.dtype(np.uint8 if source.kind == "masks" else np.int32)
    done = highest = 0

    def rows() -> Iterator[Row]:
        nonlocal done, highest
        for image, target in source.rows():
            row_name = contents.names[done] if contents.names and done < contents.count else None
            name = f"{row_name or f'sample {done}'} of {source.identity}"
            stored = _stored(image, contents.input_shape, contents.dtype, name)
            classes = _stored(np.asarray(target), target_shape, target_dtype, f"the target of {name}")
            highest = max(highest, _highest(classes, _ignore(source, contents), name))
            done += 1
            yield Row(stored, classes, None if row_name is None else Path(source.identity, row_name))
            if on_progress is not None:
                on_progress(done, contents.count)

    inputs = Form((contents.count, *contents.input_shape), contents.dtype)
    targets = Form((contents.count, *target_shape), target_dtype)
    digests = store(storage, folder, rows(), inputs, targets)
    names = source.class_names()
    _refuse_disagreement(source, done, contents.count, highest, len(names))
    meta = {
        "schema_version": PREPARED_SCHEMA,
        "source": source.identity,
        "fingerprint": source.fingerprint,
        "kind": source.kind,
        "count": contents.count,
        "input_shape": contents.input_shape,
        "dtype": contents.dtype.str,
        "scale": contents.scale,
        "ignore": _ignore(source, contents),
        "class_names": names,
        "given": contents.given,
        "names": contents.names,
        "groups": contents.groups,
        "remarks": left_out.remarks_of(source),
        "formats": contents.formats,
        "size_counts": contents.size_counts,
        "tiling": contents.tiling.as_json() if contents.tiling is not None else None,
        "storage": storage,
        "arrays": digests,
        "bytes": {name: (folder / name).stat().st_size for name in digests},
        "left_out": left_out.as_json(left_out.of_source(source)),
        "understood": getattr(source, "understood", ""),
    }
    damaged = sorted(f"{item.reason}\t{item.received}\n" for item in getattr(source, "damaged", ()))
    if damaged:
        write_atomically(folder / DAMAGED_FILES, "".join(damaged))
    write_atomically(folder / "meta.json", _text(meta))


def _text(meta: dict[str, Any]) -> str:
    return json.dumps(meta) + "\n"


def _stored(
    array: npt.NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any], name: str
) -> npt.NDArray[Any]:
    if array.shape != shape:
        raise UserError(
            f"samples of the shape {list(shape)} that the source announced",
            f"{name} of shape {list(array.shape)}",
            "Run again if the file has just changed; otherwise mend the source.",
        )
    return np.ascontiguousarray(stored_as(array, dtype, name))


def _ignore(source: Source, contents: Contents) -> int | None:
    """255 where masks hold it: announced for padding, or found in them (`ignored`) while they are read."""
    return IGNORE if contents.ignore is None and getattr(source, "ignored", False) else contents.ignore


def _highest(classes: npt.NDArray[Any], ignore: int | None, name: str) -> int:
    if classes.min() < 0:
        raise UserError(
            "classes numbered from 0", f"{name}, of class {classes.min()}", "Renumber the classes."
        )
    return int(classes.max() if ignore is None else np.where(classes == ignore, 0, classes).max())


def _refuse_disagreement(source: Source, done: int, count: int, highest: int, classes: int) -> None:
    """What a source has announced against what it gave: ours agree, one of another package may not."""
    if done != count or highest >= classes:
        raise UserError(
            f"{count} samples of {classes} classes, as the source announced",
            f"{done} samples with classes up to {highest} from {source.identity}",
            "Mend the source.",
        )
