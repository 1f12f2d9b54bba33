"""`python -m scalestudy.tasks.child WORK REQUEST`: run the code of a user's file in its own process.

WORK is "read", which stores the samples of `read(data)`, or "build", which builds and tries the model.
REQUEST is JSON. The last line of output is the answer or an error.
"""

import contextlib
import json
import operator
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from scalestudy.cluster.worker_environment import process_environment
from scalestudy.config.settings import DataSettings
from scalestudy.data.samples import leaves, map_columns
from scalestudy.data.sources.custom import SPLITS, Samples, Storing, write_custom
from scalestudy.data.store.prepared import Prepared
from scalestudy.plugins.engines import DEFAULT, engine_traits
from scalestudy.tasks.file import FETCHED_WITHIN, import_file, limit_time, remedy_for
from scalestudy.util.child_process import Say, answer_and_exit
from scalestudy.util.errors import UserError
from scalestudy.util.registry import load
from scalestudy.util.temporary import temporary_folder
from scalestudy.util.unused_packages import without_unused

INTERVAL = 0.2
"""Seconds between two lines of progress."""
AT_ONCE = 4096
"""Samples of an array that are written in one call."""
FORMS = (
    "(inputs, targets) or (inputs, targets, groups) as arrays or dictionaries of arrays, samples of these "
    "from a generator, a tf.data.Dataset or a Dataset of PyTorch, or a dictionary of such with "
    '"train" and "validation"'
)


def store_samples(request: dict[str, Any], say: Say) -> None:
    """Run `read(data)` of a Python file and write its samples; errors of the file propagate.

    Progress is printed as lines of JSON. See `data.sources.custom.CustomSource.write` for `request`.
    """
    module = import_file(Path(request["file"]))
    given = module.read(DataSettings.model_validate(request["data"]))
    last = 0.0
    count = length_of(given)

    def on_progress(done: int) -> None:
        nonlocal last
        if time.monotonic() - last > INTERVAL:
            last = time.monotonic()
            limit_time()
            # A large set may take hours; the limit is for the time without progress.
            say({"done": done, "all": count or 0})

    storing = Storing(
        getattr(module, "sequences", ()),
        getattr(module, "vocabularies", {}),
        getattr(module, "class_names", ()),
    )
    write_custom(
        samples_of(given),
        storing,
        Path(request["folder"]),
        identity=request["identity"],
        fingerprint=request["fingerprint"],
        on_progress=on_progress,
    )


def samples_of(given: Any) -> Iterator[Samples]:
    """Yield the samples that `read` returned, in the order train, validation, test.

    Raises:
        UserError: If the return value has another form, or its columns have different numbers of samples.
    """
    if not _is_split(given):
        yield from _samples(given, None)
        return
    names = set(given.keys())
    complete = {"train", "validation"} <= names or {"train", "test"} <= names
    if not complete or names - set(SPLITS):
        raise UserError(
            'a dictionary with "train" and "validation" (or "test") from read(data)',
            f"{', '.join(map(repr, given))}",
            'Name its parts "train", "validation" and "test".',
        )
    for split in SPLITS:
        if split in given:
            yield from _samples(given[split], split)


def length_of(given: Any) -> int | None:
    """Return the number of samples, or None if it is not known in advance."""
    if _is_split(given):
        total = 0
        for part in given.values():
            length = length_of(part)
            if length is None:
                return None
            total += length
        return total
    if isinstance(given, tuple):
        if given and _sized(given[0]):
            return len(leaves(given[0])[0])
        return None
    try:
        return len(given)
    except TypeError:  # a generator, or a tf.data.Dataset of unknown length
        return None


def _is_split(given: Any) -> bool:
    return isinstance(given, Mapping) and bool(given.keys() & set(SPLITS))


def _samples(given: Any, split: str | None) -> Iterator[Samples]:
    if isinstance(given, tuple):
        yield from _of_arrays(given, split)
        return
    # Datasets are known by their methods, so that no framework is imported for others.
    if hasattr(given, "as_numpy_iterator"):
        given = given.as_numpy_iterator()
    if hasattr(given, "collate_fn"):
        raise UserError(
            "samples of a Dataset from read(data)",
            f"batches of a {type(given).__name__}",
            "Return loader.dataset: batch_size under [train] makes the batches. What collate_fn does to a "
            "sample belongs into the Dataset; sequences = [...] in the file pads those of different length.",
        )
    indexed = hasattr(given, "__getitem__") and hasattr(given, "__len__")
    if indexed and not isinstance(given, Iterable):
        given = map(given.__getitem__, range(len(given)))  # a Dataset of PyTorch
    if not isinstance(given, Iterable) or isinstance(given, Mapping | str | np.ndarray):
        raise _another_form(given)
    for sample in given:
        if not isinstance(sample, tuple) or len(sample) not in (2, 3):
            raise _another_form(sample, "a sample that is ")
        inputs, targets = (
            map_columns(lambda value: [value], side) for side in sample[:2]
        )
        group = None
        if len(sample) == 3:
            group = [str(sample[2])]
        yield Samples(split, inputs, targets, group, 1)


def _of_arrays(given: tuple[Any, ...], split: str | None) -> Iterator[Samples]:
    if len(given) not in (2, 3) or not all(map(_sized, given)):
        raise _another_form(given)
    lengths = {}
    for side, columns in zip(("inputs", "targets", "groups"), given, strict=False):
        if isinstance(columns, Mapping):
            for name, column in columns.items():
                lengths[f"{side} {name!r}"] = len(column)
        else:
            lengths[side] = len(columns)
    count = next(iter(lengths.values()))
    if set(lengths.values()) != {count}:
        raise UserError(
            "equally many samples in all inputs and targets of read(data)",
            ", ".join(f"{length} {name}" for name, length in lengths.items()),
            "Return one entry per sample along the first axis of each.",
        )
    columns = [map_columns(_array, side) for side in given[:2]]
    groups: list[str] | None = None
    if len(given) == 3:
        groups = list(map(str, given[2]))
    # In parts, so that progress is shown while a large array is written.
    for start in range(0, count, AT_ONCE):
        stop = min(start + AT_ONCE, count)
        part = operator.itemgetter(slice(start, stop))
        inputs, targets = (map_columns(part, side) for side in columns)
        yield Samples(
            split,
            inputs,
            targets,
            groups and groups[start:stop],
            stop - start,
        )


def _sized(given: Any) -> bool:
    return all(
        hasattr(column, "__len__") and not isinstance(column, str)
        for column in leaves(given)
    )


def _array(column: Any) -> Any:
    """Convert tensors and data-frame columns to arrays; keep lists, which may hold sequences."""
    if isinstance(column, list | tuple):
        return column
    return np.asarray(column)


def _another_form(given: Any, what: str = "") -> UserError:
    received = f"{what}{type(given).__name__}"
    if isinstance(given, tuple):
        received += f" of {len(given)}"
    return UserError(f"{FORMS}, from read(data)", received, "Return one of these.")


def _action_of(error: BaseException) -> str:
    # An OSError may come from the user's file or from the cache folder.
    if isinstance(error, OSError):
        return "Make what it reads be there, and space in the cache folder."
    return "Correct it; `python` on the file, with read called, shows more."


def build(request: dict[str, Any]) -> dict[str, Any]:
    """Build a user's model once, with network access, and try it; errors of the file propagate.

    Afterwards pretrained weights are in Keras's cache (KERAS_HOME), so no worker has to download them. A
    model that cannot be saved or does not fit its data is refused here, before a job waits in a queue.

    Args:
        request: `file`, `prepared` (folder of the data set), `train` (training settings) and `engine`.
            Without `prepared` nothing is built: only what needs no data is checked.

    Returns:
        {"notes": […]}, likely mistakes.
    """
    path = request["file"]
    engine = engine_traits(request.get("engine", DEFAULT))
    os.environ.update(
        process_environment(os.environ, engine, gpus=(), quiet=True).values
    )
    with without_unused(engine.unused):
        from scalestudy.config.catalog import is_ours
        from scalestudy.config.settings import ResolvedTrain, TrainSettings
        from scalestudy.config.task_defaults import task_defaults
        from scalestudy.tasks.load import module_of, refuse_incomplete, task_of
        from scalestudy.tasks.task import DataInfo
        from scalestudy.tasks.trial import (
            forward,
            note_on_weights,
            notes_on,
            prove_savable,
            refuse_weights,
            try_task,
        )

    train = request.get("train")
    if train is None:
        resolved = task_defaults(path).complete_train(TrainSettings())
    else:
        resolved = ResolvedTrain.model_validate(train)
    limit_time()
    module = module_of(path)
    # What needs no data is checked before data are prepared, which may take long.
    refuse_incomplete(module, resolved)
    if "prepared" not in request:
        return {"notes": []}
    prepared = Prepared.open(request["prepared"])
    data = DataInfo.of(prepared)
    limit_time(FETCHED_WITHIN)
    # Building may download pretrained weights, which is why it has hours.
    task = task_of(module, data, resolved)
    refuse_weights(task, path, resolved.weights)
    # A full temporary folder is no error of the model: suppress OSError.
    with contextlib.suppress(OSError), temporary_folder("scalestudy-task-") as folder:
        # Before training, which a model that cannot be saved would waste.
        prove_savable(task.model, f"{folder}/model.keras", task.definitions)
    if is_ours(path):
        return {"notes": []}
    outputs = forward(task, prepared, path)
    notes = notes_on(module, task, prepared, outputs)
    notes += note_on_weights(
        lambda: task_of(module_of(path), data, resolved).model,
        path,
    )
    try_task(load(engine.implementation), task, prepared, outputs, path)
    return {"notes": notes}


def _read(request: dict[str, Any], say: Say) -> dict[str, Any]:
    os.environ.update(
        process_environment(
            os.environ,
            engine_traits(DEFAULT),
            gpus=(),
            quiet=True,
        ).values
    )
    limit_time()
    store_samples(request, say)
    return {}


def main(work: str, text: str) -> NoReturn:
    """Carry out a request: `work` is "build" or "read"."""
    request = json.loads(text)
    file = request["file"]
    if work == "read":
        answer_and_exit(
            lambda say: _read(request, say),
            f"read(data) of {file} to give samples",
            _action_of,
        )
    answer_and_exit(
        lambda _: build(request),
        f"a task file that works: {file}",
        remedy_for,
    )


if __name__ == "__main__":
    main(*sys.argv[1:3])
