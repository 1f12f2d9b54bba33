"""The files of a set that a task reads itself: its columns, sample by sample, and the manifest."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.data.column import Column, Described, named, stem
from scalestudy.data.columns import each, leaves
from scalestudy.data.prepared import PREPARED_SCHEMA
from scalestudy.data.source import Ranges
from scalestudy.data.write_columns import ColumnWriter, digests, refuse_name
from scalestudy.errors import UserError
from scalestudy.files import write_atomically

SPLITS = ("train", "validation", "test")


class Part(NamedTuple):
    """Samples one after another.

    Attributes:
        split: "train", "validation" or "test"; None where nothing is split yet.
        inputs: Arrays or lists, by name where there are several; one sample along the first axis.
        targets: The same.
        groups: A text a sample, or None.
        samples: How many.
    """

    split: str | None
    inputs: Any
    targets: Any
    groups: Sequence[str] | None
    samples: int


class How(NamedTuple):
    """How samples are stored: what a task file says beside `read`.

    Attributes:
        sequences: Names of the inputs and targets that are sequences of different length; "inputs" or
            "targets" where there is one without a name.
        vocabularies: Texts in the order of their numbers, by the same names.
        class_names: Of a single target of classes; empty for the vocabulary, or the numbers.
    """

    sequences: Sequence[str] = ()
    vocabularies: Mapping[str, Sequence[str]] = {}
    class_names: Sequence[str] = ()


def write_own(
    parts: Iterable[Part], how: How, folder: Path, *, identity: str, fingerprint: str,
    on_progress: Callable[[int], None],
) -> None:  # fmt: skip
    """Write parts into an empty folder, with the manifest.

    Args:
        parts: In the order train, validation, test where they are split.
        how: How they are stored.
        folder: Where.
        identity: What was read, for people.
        fingerprint: Of what it was made from.
        on_progress: Called with the samples done.

    Raises:
        UserError: If samples differ in what they hold, or cannot be stored.
        OSError: If the folder cannot take them.
    """
    writers: dict[str, Any] = {}
    given: dict[str, list[int]] = {}
    groups: list[str] | None = None
    done = 0
    for part in parts:
        for side, columns in (("inputs", part.inputs), ("targets", part.targets)):
            if side not in writers:
                writers[side] = _writers(folder, side, columns, how)
            _refuse_other(writers[side], columns, side, done)
            each(lambda writer, samples: writer.write(samples, done), writers[side], columns)  # noqa: B023
        groups = _with_groups(groups, part, done)
        done += part.samples
        if part.split is not None:
            given.setdefault(part.split, [done - part.samples, done])[1] = done
        on_progress(done)
    if done < 2:
        raise UserError(
            "at least 2 samples, one to train on and one to validate on", f"{done} from {identity}",
            "Have read(data) give more.",
        )  # fmt: skip
    inputs, targets = (each(ColumnWriter.close, writers[side]) for side in ("inputs", "targets"))
    _refuse_unused({"inputs": inputs, "targets": targets}, how)
    ranges: Ranges = {split: (rows[0], rows[1]) for split, rows in given.items()}
    meta = {
        "schema_version": PREPARED_SCHEMA,
        "source": identity,
        "fingerprint": fingerprint,
        "kind": "own",
        "count": done,
        "input_shape": inputs.shape if isinstance(inputs, Column) else (),
        "dtype": None,
        "scale": None,
        "ignore": None,
        "class_names": _class_names(targets, how.class_names),
        "given": ranges,
        "names": None,
        "groups": groups,
        "arrays": digests(folder),
        "left_out": [],
        "understood": _understood(inputs, targets),
        "columns": {"inputs": _as_json(inputs), "targets": _as_json(targets)},
    }
    write_atomically(folder / "meta.json", json.dumps(meta) + "\n")


def _writers(folder: Path, side: str, columns: Any, how: How) -> Any:
    def writer(name: str | None) -> ColumnWriter:
        if name is not None:
            refuse_name(name, side)
        known = side if name is None else name
        label = f"the {side}" if name is None else f"{side[:-1]} {name!r}"
        vocabulary = how.vocabularies.get(known)
        return ColumnWriter(
            folder, stem(side, name), label,
            sequence=known in how.sequences, vocabulary=list(vocabulary) if vocabulary else None,
        )  # fmt: skip

    return {name: writer(name) for name in columns} if isinstance(columns, Mapping) else writer(None)


def _refuse_other(writers: Any, columns: Any, side: str, done: int) -> None:
    names = [sorted(given) if isinstance(given, Mapping) else [] for given in (writers, columns)]
    if names[0] != names[1]:
        first, now = (", ".join(each) or "one without a name" for each in names)
        raise UserError(
            f"{side} {first}, as in sample 0", f"{now} in sample {done}", "Give all samples alike."
        )


def _with_groups(groups: list[str] | None, part: Part, done: int) -> list[str] | None:
    if done and (groups is None) != (part.groups is None):
        raise UserError(
            "a group for every sample, or for none", f"another answer from sample {done} on",
            "Give groups for all samples.",
        )  # fmt: skip
    return None if part.groups is None else [*(groups or ()), *part.groups]


def _refuse_unused(described: dict[str, Described], how: How) -> None:
    """Refuse names in `sequences` and `vocabularies` that there are none of: they are misspelt."""
    names = {side for side, one in described.items() if isinstance(one, Column)}
    names |= {name for one in described.values() if not isinstance(one, Column) for name in one}
    unknown = [name for name in (*how.sequences, *how.vocabularies) if name not in names]
    if unknown:
        raise UserError(
            f"names of inputs and targets in `sequences` and `vocabularies`: {', '.join(sorted(names))}",
            repr(unknown[0]),
            "Correct the name in the task file.",
        )


def _class_names(targets: Described, given: Sequence[str]) -> list[str]:
    found = leaves(targets)
    if len(found) != 1 or found[0].sequence or not found[0].classes:
        return []
    names = list(given) or list(found[0].vocabulary) or [str(each) for each in range(found[0].classes)]
    if len(names) < found[0].classes:
        raise UserError(
            f"`class_names` for {found[0].classes} classes",
            f"{len(names)}",
            "Name each class in the task file.",
        )
    return names


def _understood(inputs: Described, targets: Described) -> str:
    return f"inputs {_said(inputs)}; targets {_said(targets)}"


def _said(described: Described) -> str:
    def one(name: str | None, column: Column) -> str:
        kind = f"{len(column.vocabulary)} texts" if column.vocabulary else column.dtype
        shape = f"[{', '.join('any' if length is None else str(length) for length in column.shape)}]"
        return f"{'' if name is None else f'{name} '}{shape} of {kind}"

    return ", ".join(one(name, column) for name, column in named(described))


def _as_json(described: Described) -> Any:
    return each(Column.as_json, described)
