"""A source read by `read(data)` of a user's Python file, which runs once in a separate process.

That process writes one file per input and target, as samples arrive.
"""

import ast
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scalestudy.config.settings import DataSettings
from scalestudy.data.samples import (
    NAME,
    Array,
    Column,
    Described,
    Kind,
    leaves,
    map_columns,
    named_columns,
    stem,
)
from scalestudy.data.sources.source import OnProgress, digest, files_digest
from scalestudy.data.store.prepared import Prepared, write_header
from scalestudy.util.child_process import ask_file
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.syntax import bound_names, parse

SPLITS = ("train", "validation", "test")
WIDENED = {
    "bool": "uint8",
    "int8": "int32",
    "int16": "int32",
    "uint32": "int64",
    "uint64": "int64",
}
"""Types that are stored as a wider type that every framework supports."""
STORED = {"uint8", "uint16", "int32", "int64", "float16", "float32", "float64"}
ALIKE = "Give all samples the same shapes and types; name sequences of any length in `sequences`."
_OF_TRAINING = "model loss metrics better callbacks pretrained training_losses kind"
NOT_READ = frozenset(_OF_TRAINING.split())
"""Names of a task file that do not affect how data is read."""


def code_of_reading(path: Path) -> str:
    """Return the code of a file without comments and without definitions of a model, a loss and so on.

    Raises:
        UserError: If the file cannot be read, is not valid Python, or defines no `read`.
    """
    module = parse(path, "a Python file that reads the data")
    names = set()
    for node in ast.walk(module):
        # Definitions and imports have a name, assigned variables an id.
        names.add(getattr(node, "name", getattr(node, "id", None)))
    if "read" not in names:
        raise UserError(
            f"a function `read(data)` in {path}",
            "none",
            "Define `read`, or remove the key `read`.",
        )
    needed: set[str] = set()
    for statement in module.body:
        if not _binds_only(statement, NOT_READ):
            needed |= _used_names(statement)
    # What reading needs counts, even if it is named like a part of training.
    unread = NOT_READ - needed
    kept = []
    for statement in module.body:
        if not _binds_only(statement, unread):
            # Comments and layout change nothing that is read, so they change no fingerprint.
            kept.append(ast.unparse(statement))
    return "\n".join(kept)


def _used_names(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
    return names


def _binds_only(statement: ast.stmt, names: frozenset[str]) -> bool:
    bound = bound_names(statement)
    return bool(bound) and bound <= names


class CustomSource:
    """Samples from `read` of a Python file.

    Args:
        data: Section [data]; `read` interprets its source.
        path: The source, if it is an existing path.
    """

    kind: Kind = "custom"

    def __init__(
        self,
        file: Path,
        data: DataSettings,
        path: Path | None,
    ) -> None:
        self._file = file
        if path == file:  # of the file itself, only the code that reads matters
            path = None
        source = str(path) if path is not None else data.source
        self._data = data.model_copy(update={"source": source})
        self.label = file.stem
        self.identity = f"{source} as {file} reads it"
        read_by = data.source if path is None else _digest(path)
        # Without the path of the file: a copy reads the same.
        self.fingerprint = digest(
            "custom",
            1,
            code_of_reading(file),
            read_by,
            data.image_size,
            data.seed,
        )

    def write(
        self,
        folder: Path,
        on_progress: OnProgress | None,
        within: float,
    ) -> None:
        """Run `read` and write its samples and the manifest into an empty folder.

        Raises:
            UserError: If `read` raises an error or gives no sample `within` seconds (either named with its
                line), or its samples cannot be stored.
            RunError: If the process fails without an answer.
        """
        request = {
            "folder": str(folder),
            "data": self._data.model_dump(mode="json"),
            "identity": self.identity,
            "fingerprint": self.fingerprint,
        }
        answer = ask_file(
            "read",
            str(self._file),
            request,
            within,
            on_progress=on_progress,
        )
        if answer.code:
            raise RunError(
                f"read(data) of {self._file} to finish",
                answer.end(),
                "If memory ran out, make it a generator that yields samples.",
            )


def _digest(path: Path) -> str:
    if path.is_file():
        return files_digest(path.parent, [path])
    files = [item for item in path.rglob("*") if item.is_file()]
    # File systems list files in different orders, and the digest depends on theirs.
    return files_digest(path, sorted(files))


class Samples(NamedTuple):
    """Consecutive samples.

    Attributes:
        split: "train", "validation" or "test"; None if the source has no split.
        inputs: An array or a list, or a dictionary of these by name; samples along the first axis.
        targets: The same for the targets.
        groups: The group of each sample, or None.
    """

    split: str | None
    inputs: Any
    targets: Any
    groups: Sequence[str] | None
    size: int


class Storing(NamedTuple):
    """How samples are stored: optional names that a task file defines beside `read`.

    Attributes:
        sequences: Names of the inputs and targets that are sequences of different lengths; "inputs" or
            "targets" for a single one without a name.
        vocabularies: Strings in the order of their numbers, by the same names.
        class_names: Names of the classes of a single target. If empty, the vocabulary or the numbers.
    """

    sequences: Sequence[str] = ()
    vocabularies: Mapping[str, Sequence[str]] = {}
    class_names: Sequence[str] = ()


def write_custom(
    samples: Iterable[Samples],
    storing: Storing,
    folder: Path,
    *,
    identity: str,
    fingerprint: str,
    on_progress: Callable[[int], None],
) -> None:
    """Write samples, in the order train, validation, test, and the manifest into an empty folder.

    `identity` describes the source, `fingerprint` is its digest. `on_progress` is called with the number of
    samples done.

    Raises:
        UserError: If samples differ in names, shapes or types, or cannot be stored.
        OSError: If the folder is not writable or full.
    """
    writers: dict[str, Any] = {}
    given: dict[str, list[int]] = {}
    groups: list[str] | None = None
    done = 0
    for part in samples:
        for side, columns in (("inputs", part.inputs), ("targets", part.targets)):
            if side not in writers:
                writers[side] = _writers(folder, side, columns, storing)
            _refuse_other_names(writers[side], columns, side, done)
            map_columns(
                lambda writer, values, start=done: writer.write(values, start),
                writers[side],
                columns,
            )
        # A split keeps groups together, so it has to know the group of every sample.
        if done and (groups is None) != (part.groups is None):
            raise UserError(
                "a group for every sample, or for none",
                f"a different answer from sample {done} on",
                "Give groups for all samples.",
            )
        if part.groups is not None:
            groups = [*(groups or ()), *part.groups]
        done += part.size
        if part.split is not None:
            # Splits come one after another, so that each is one range of rows.
            first = done - part.size
            rows = given.setdefault(part.split, [first, done])
            rows[1] = done
        on_progress(done)
    if done < 2:
        raise UserError(
            "at least 2 samples, one to train on and one to validate on",
            f"{done} from {identity}",
            "Return more samples from read(data).",
        )
    inputs = map_columns(ColumnWriter.close, writers["inputs"])
    targets = map_columns(ColumnWriter.close, writers["targets"])
    _refuse_unused({"inputs": inputs, "targets": targets}, storing)
    digests = {}
    # Only now: texts are renumbered when their column is closed.
    for path in sorted(folder.glob("*.npy")):
        with open(path, "rb") as file:
            digests[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    Prepared(
        path=folder,
        source=identity,
        fingerprint=fingerprint,
        kind="custom",
        count=done,
        input_shape=inputs.shape if isinstance(inputs, Column) else (),
        class_names=_class_names(targets, storing.class_names),
        given=given,
        groups=groups,
        arrays=digests,
        understood=f"inputs {_in_words(inputs)}; targets {_in_words(targets)}",
        columns=(inputs, targets),
    ).write()


class ColumnWriter:
    """Writes one column in parts.

    Args:
        stem: First part of the file names.
        label: Name of the column in messages: "input 'age'".
        sequence: Whether samples have different lengths.
        vocabulary: Strings in the order of their numbers. If None, all strings that occur, sorted.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        label: str,
        *,
        sequence: bool,
        vocabulary: list[str] | None,
    ) -> None:
        self._path = folder / f"{stem}.npy"
        self._label = label
        self._sequence = sequence
        self._given = vocabulary
        self._codes = {text: code for code, text in enumerate(vocabulary or [])}
        self._file = open(self._path, "wb")  # noqa: SIM115 (closed by `close`)
        self._form: tuple[tuple[int, ...], np.dtype[Any]] | None = None
        self._texts = False
        self._lengths: list[int] = []
        self._count = 0
        self._lowest = np.inf
        self._highest = -np.inf

    def write(self, samples: Iterable[Any], first: int) -> None:
        """Append samples; `first` is the number of the first one in the set.

        Raises:
            UserError: If a sample has another shape or type than earlier ones, or cannot be stored.
            OSError: If the folder is not writable or full.
        """
        if not self._sequence:
            array = self._together(samples, first)
            where = f"sample {first}"
            if len(array) != 1:
                where = f"samples {first} to {first + len(array) - 1}"
            self._append(self._numbers(array, where), where)
            return
        for number, sample in enumerate(samples, first):
            array = self._numbers(np.asarray(sample), f"sample {number}")
            if not array.ndim:
                raise UserError(
                    f"sequences for {self._label}, which `sequences` names",
                    f"a single value in sample {number}",
                    "Return a list or an array, or remove its name from `sequences`.",
                )
            self._lengths.append(len(array))
            self._append(array, f"sample {number}")

    def close(self) -> Column:
        """Finish the files, and return the description of the column.

        Raises:
            UserError: If the column is empty.
            OSError: If the folder is not writable or full.
        """
        if self._form is None or self._count == 0:
            raise UserError(
                f"{self._label} that is not empty",
                "an empty one",
                "Return samples that are not empty.",
            )
        rest, dtype = self._form
        # The number of samples is known only now; the header has room for it.
        self._file.seek(0)
        write_header(self._file, (self._count, *rest), dtype)
        # On the disk before the manifest, which says that the set is complete.
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if self._sequence:
            ends = np.cumsum(self._lengths)
            # With the beginning of the first: sample k lies between the offsets k and k + 1.
            offsets = np.concatenate([[0], ends]).astype(np.int64)
            with open(self._path.with_suffix(".offsets.npy"), "wb") as file:
                np.lib.format.write_array(file, offsets, version=(1, 0))
                file.flush()
                os.fsync(file.fileno())
        vocabulary = tuple(self._in_order()) if self._texts else ()
        shape = (None, *rest) if self._sequence else rest
        return Column(
            shape,
            dtype.name,
            float(self._lowest),
            float(self._highest),
            vocabulary,
        )

    def _together(self, samples: Any, first: int) -> Array:
        try:
            return np.asarray(samples)
        except ValueError:  # different shapes
            shapes = [np.shape(sample) for sample in samples]
            other = next(i for i, shape in enumerate(shapes) if shape != shapes[0])
            raise self._unlike(
                list(shapes[0]),
                list(shapes[other]),
                f"sample {first + other}",
            ) from None

    def _numbers(self, array: Array, where: str) -> Array:
        """Convert values to a type that is stored, and strings to their numbers."""
        if _holds_texts(array):
            return self._coded(array, where)
        if array.dtype.name not in STORED | WIDENED.keys():
            what = f"values of type {array.dtype}"
            if array.dtype == object:
                what = "arrays of different shapes"
            raise UserError(
                f"numbers or strings of one shape for {self._label}",
                f"{what} in {where}",
                ALIKE,
            )
        # A single NaN would make the loss of its batch NaN, and with it all weights.
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UserError(
                f"finite numbers for {self._label}",
                f"NaN or infinity in {where}",
                "Replace or remove them.",
            )
        return array.astype(WIDENED.get(array.dtype.name, array.dtype), copy=False)

    def _coded(self, array: Array, where: str) -> Array:
        self._texts = True
        codes = np.empty(array.size, np.int32)
        for place, item in enumerate(array.ravel()):
            text = item.decode() if isinstance(item, bytes) else str(item)
            if text not in self._codes:
                if self._given is not None:
                    raise UserError(
                        f"strings of the vocabulary of {self._label}",
                        f"{text!r} in {where}",
                        "Add it to `vocabularies` in the task file, or return another string.",
                    )
                self._codes[text] = len(self._codes)
            codes[place] = self._codes[text]
        return codes.reshape(array.shape)

    def _append(self, array: Array, where: str) -> None:
        form = array.shape[1:], array.dtype
        if self._form is None:
            self._form = form
            write_header(self._file, (0, *form[0]), form[1])
        if form != self._form:
            raise self._unlike(_form_in_words(self._form), _form_in_words(form), where)
        self._count += len(array)
        if array.size:
            self._lowest = min(self._lowest, float(array.min()))
            self._highest = max(self._highest, float(array.max()))
            self._file.write(np.ascontiguousarray(array).data)

    def _unlike(
        self,
        first: object,
        other: object,
        where: str,
    ) -> UserError:
        return UserError(
            f"{self._label} in one shape and type: {first}, as in sample 0",
            f"{other} in {where}",
            ALIKE,
        )

    def _in_order(self) -> list[str]:
        """Return the vocabulary. Strings that were numbered as they came are renumbered in sorted order."""
        if self._given is not None:
            return self._given
        texts = sorted(self._codes)
        new = np.empty(len(texts), np.int32)
        for code, text in enumerate(texts):
            new[self._codes[text]] = code
        # In parts, since a column may be larger than the memory.
        stored = np.load(self._path, mmap_mode="r+")
        for start in range(0, len(stored), 2**20):
            part = stored[start : start + 2**20]
            part[...] = new[part]
        stored.flush()
        return texts


def _holds_texts(array: Array) -> bool:
    if array.dtype != object:
        return array.dtype.kind in "UST"
    # Texts in an array of objects, as pandas keeps them.
    return all(isinstance(item, str | bytes) for item in array.ravel())


def _form_in_words(form: tuple[tuple[int, ...], np.dtype[Any]]) -> str:
    shape, dtype = form
    return f"{list(shape)} of {dtype}"


def _writers(
    folder: Path,
    side: str,
    columns: Any,
    storing: Storing,
) -> Any:
    def writer(name: str | None) -> ColumnWriter:
        if name is not None and (not isinstance(name, str) or not NAME.fullmatch(name)):
            raise UserError(
                f"names of {side} of letters, digits and _, as Keras requires",
                repr(name),
                "Rename it in read(data).",
            )
        key = side
        label = f"the {side}"
        if name is not None:
            key = name
            # One of the "inputs" is an "input".
            label = f"{side[:-1]} {name!r}"
        vocabulary = storing.vocabularies.get(key)
        return ColumnWriter(
            folder,
            stem(side, name),
            label,
            sequence=key in storing.sequences,
            vocabulary=list(vocabulary) if vocabulary else None,
        )

    if isinstance(columns, Mapping):
        return {name: writer(name) for name in columns}
    return writer(None)


def _refuse_other_names(
    writers: Any,
    columns: Any,
    side: str,
    done: int,
) -> None:
    first, now = _listed_names(writers), _listed_names(columns)
    if first != now:
        raise UserError(
            f"{side} {first}, as in sample 0",
            f"{now} in sample {done}",
            "Return the same names for all samples.",
        )


def _listed_names(columns: Any) -> str:
    if isinstance(columns, Mapping) and columns:
        return ", ".join(sorted(columns))
    return "one without a name"


def _refuse_unused(described: dict[str, Described], storing: Storing) -> None:
    """Refuse unknown names in `sequences` and `vocabularies`: they are misspelt."""
    names = set()
    for side, columns in described.items():
        for name, _ in named_columns(columns):
            names.add(name or side)
    for given in (*storing.sequences, *storing.vocabularies):
        if given not in names:
            raise UserError(
                f"names of inputs and targets in `sequences` and `vocabularies`: {', '.join(sorted(names))}",
                repr(given),
                "Correct the name in the task file.",
            )


def _class_names(targets: Described, given: Sequence[str]) -> list[str]:
    columns = leaves(targets)
    if len(columns) != 1:
        return []
    [column] = columns
    if column.sequence or not column.classes:
        return []
    numbers = map(str, range(column.classes))
    names = list(given or column.vocabulary or numbers)
    if len(names) < column.classes:
        raise UserError(
            f"`class_names` for {column.classes} classes",
            f"{len(names)}",
            "Name each class in the task file.",
        )
    return names


def _in_words(described: Described) -> str:
    parts = []
    for name, column in named_columns(described):
        kind = column.dtype
        if column.vocabulary:
            kind = f"{len(column.vocabulary)} texts"
        # Only the length of a sequence is None.
        lengths = []
        for length in column.shape:
            lengths.append("any" if length is None else str(length))
        words = f"[{', '.join(lengths)}] of {kind}"
        if name is not None:
            words = f"{name} {words}"
        parts.append(words)
    return ", ".join(parts)
