"""The files of a prepared set: two arrays, sample by sample, and the manifest."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data import left_out
from scalestudy.data.cast import stored_as
from scalestudy.data.digested import Digested
from scalestudy.data.kinds import Kind
from scalestudy.data.prepared import PREPARED_SCHEMA
from scalestudy.data.source import IGNORE, Contents, Source
from scalestudy.errors import UserError
from scalestudy.files import write_atomically
from scalestudy.seals import sealed

OnProgress = Callable[[int, int], None]


def bytes_of(kind: Kind, contents: Contents) -> int:
    """Bytes of the set on disk, a little more than it takes."""
    pixels = contents.input_shape[0] * contents.input_shape[1]
    one = pixels * contents.input_shape[2] * contents.dtype.itemsize + (pixels if kind == "masks" else 4)
    return contents.count * one + 1_000_000


def write_set(source: Source, contents: Contents, folder: Path, on_progress: OnProgress | None) -> None:
    """Write the arrays and the manifest of a source into an empty folder.

    Raises:
        UserError: the source is damaged, or gives what it has not announced or what cannot be stored.
        OSError: the folder cannot take it.
    """
    target_shape = contents.input_shape[:2] if source.kind == "masks" else ()
    target_dtype = np.dtype(np.uint8 if source.kind == "masks" else np.int32)
    done = highest = 0
    with open(folder / "inputs.npy", "wb") as first, open(folder / "targets.npy", "wb") as second:
        inputs, targets = Digested(first), Digested(second)
        _write_header(inputs, (contents.count, *contents.input_shape), contents.dtype)
        _write_header(targets, (contents.count, *target_shape), target_dtype)
        for image, target in source.rows():
            name = contents.names[done] if contents.names and done < contents.count else f"sample {done}"
            name = f"{name} of {source.identity}"
            inputs.write(_stored(image, contents.input_shape, contents.dtype, name).data)
            classes = _stored(np.asarray(target), target_shape, target_dtype, f"the target of {name}")
            targets.write(classes.data)
            highest = max(highest, _highest(classes, _ignore(source, contents), name))
            done += 1
            if on_progress is not None:
                on_progress(done, contents.count)
        for stream in (first, second):
            stream.flush()
            os.fsync(stream.fileno())
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
        "arrays": {"inputs.npy": inputs.hexdigest(), "targets.npy": targets.hexdigest()},
        "left_out": left_out.as_json(left_out.of_source(source)),
        "understood": getattr(source, "understood", ""),
    }
    write_atomically(folder / "meta.json", _text(meta))


def note_left_out(folder: Path, now: tuple[left_out.LeftOut, ...]) -> None:
    """Keep in the manifest of a made set what its source leaves out now, where that can be written."""
    file = folder / "meta.json"
    with suppress(OSError, ValueError):
        write_atomically(file, _text({**json.loads(file.read_text()), "left_out": left_out.as_json(now)}))


def _text(meta: dict[str, Any]) -> str:
    return sealed(json.dumps(meta), indent=None) + "\n"


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


def _write_header(stream: Digested, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, description)  # type: ignore[arg-type]
