"""What a task's file says for the keys that a study file leaves out; the file is parsed, not run."""

import ast
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from scalestudy.config.catalog import task_file
from scalestudy.config.keys import WrongValue, check_value
from scalestudy.config.settings import (
    DataSettings,
    ResolvedData,
    ResolvedTrain,
    TrainSettings,
)
from scalestudy.plugins.engines import engine_names
from scalestudy.util.errors import UserError
from scalestudy.util.syntax import EVERYTHING, bound_names, parse

COMMON: dict[str, Any] = {
    "epochs": 10,
    "batch_size": 32,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "schedule": "constant",
}
"""Training settings of a task that gives none."""
NAMES = ("data", "kind", "train", "read", "metrics", "engine")
"""Names of a task file that are needed before any framework is imported."""


@dataclass(frozen=True)
class TaskDefaults:
    """Defaults of a task for keys that the study file leaves out.

    Attributes:
        task: Its name, or the path of its file.
        file: Its file.
        kind: Kind of data: a class for every pixel ("masks") or for every sample ("classes"), or data that
            the file reads itself ("custom"). Like `source`, None if the file has no literal for it.
        source: Source of the data.
        train: Keys of [train].
        data: Other keys of [data].
        reads: Whether the file has a function `read` that returns the data.
        metrics: Names of metrics; () if the file has no literal for them.
        engine: Engine that computes its model; None for any engine that computes Keras models.
    """

    task: str
    file: Path
    kind: Literal["masks", "classes", "custom"] | None = None
    source: str | None = None
    train: dict[str, Any] = field(default_factory=COMMON.copy)
    data: dict[str, Any] = field(default_factory=dict)
    reads: bool = False
    metrics: tuple[str, ...] = ()
    engine: str | None = None

    def complete_train(
        self,
        train: TrainSettings,
        *,
        device: str = "cpu",
    ) -> ResolvedTrain:
        """Complete `train` with the task's defaults; `device` is "cpu" or "gpu"."""
        complete = train.model_dump()
        # On GPUs, sums in a fixed order are slower.
        defaults = {"deterministic": device == "cpu"} | self.train
        for key, value in defaults.items():
            if complete[key] is None:
                complete[key] = value
        return ResolvedTrain.model_validate(complete)

    def complete_data(self, data: DataSettings) -> ResolvedData:
        """Complete `data` with the task's defaults and source; raises UserError if neither names a source."""
        read = data.read or None
        if read is None and self.reads:
            read = str(self.file)
        source = data.source or self.source or read
        if source is None:
            raise UserError(
                "a source of data",
                f"none for the task {self.task}",
                'Write source = "FOLDER" under [data], or data = "FOLDER" in the task file.',
            )
        values = data.model_dump()
        for key, value in self.data.items():
            if key not in data.model_fields_set:
                values[key] = value
        values |= {"source": source, "read": read}
        return ResolvedData.model_validate(values)


def task_defaults(task: str) -> TaskDefaults:
    """Read the defaults of a task from its file, without running it.

    Raises:
        UserError: The file is not valid Python, or has values that its keys do not accept.
    """
    file = task_file(task)
    # A study that was made on another machine can still be reported here.
    if not os.path.exists(file):
        return TaskDefaults(task, file)
    text = read_task_file(file)
    for name in ("train", "kind", "engine", "data"):
        if name in text.computed:
            raise UserError(
                f"only literals in `{name}`, which is read without running the file",
                f"a computed value in {file}",
                "Write values and names in quotes, not code; $NAME in a path stands for a variable.",
            )
    kind = text.values.get("kind")
    data = text.values.get("data")
    settings: dict[str, Any] = {}
    if isinstance(data, dict):
        settings = dict(data)
    elif isinstance(data, str):
        settings = {"source": data}
    source = settings.pop("source", None)
    if kind not in ("masks", "classes", "custom", None):
        raise _wrong_task_file('kind = "masks" or "classes"', repr(kind), file)
    # A task may set what has no default of its own.
    open_keys = []
    for key, setting in TrainSettings.model_fields.items():
        if setting.default is None:
            open_keys.append(key)
    if not isinstance(source, str):
        source = None
    train = text.values.get("train")
    if train is None:
        train = {}
    return TaskDefaults(
        task=task,
        file=file,
        kind=kind,
        source=source,
        train=COMMON | _check("train", train, open_keys, file),
        data=_check("data", settings, DataSettings.model_fields, file),
        reads=text.reads,
        metrics=_names_of(text.values.get("metrics")),
        engine=_engine(text.values.get("engine"), file),
    )


def _names_of(metrics: Any) -> tuple[str, ...]:
    """Return a list of names as it is; () for anything else, such as metrics that are functions."""
    if not isinstance(metrics, list):
        return ()
    for name in metrics:
        if not isinstance(name, str):
            return ()
    return tuple(metrics)


def _engine(name: Any, file: Path) -> str | None:
    if name is None:
        return None
    if name in engine_names():
        return str(name)
    expected = " or ".join(f'"{known}"' for known in engine_names())
    raise _wrong_task_file(f"{expected} for engine", repr(name), file)


def _check(
    section: str,
    given: Any,
    known: Collection[str],
    file: Path,
) -> dict[str, Any]:
    """Validate a section of a task file, each key as in the study file."""
    if not isinstance(given, dict):
        raise _wrong_task_file(f"{section} = {{…}}", repr(given), file)
    for key, value in given.items():
        if key not in known:
            expected = f"keys of [{section}] that tasks may set ({', '.join(known)}) in `{section}`"
            raise _wrong_task_file(expected, f"`{key}`", file)
        try:
            check_value(f"{section}.{key}", value)
        except WrongValue as wrong:
            raise _wrong_task_file(
                f"{wrong} for {section}.{key}",
                repr(value),
                file,
            ) from None
    return given


def _wrong_task_file(expected: str, received: str, file: Path) -> UserError:
    return UserError(expected, f"{received} in {file}", "Correct the task file.")


class TaskText(NamedTuple):
    """Which of `NAMES` a task file gives as literals, and which it computes.

    Attributes:
        computed: Names that were last assigned an expression, as in `train = dict(epochs=5)`.
        reads: Whether the file has a function `read` that returns the data.
    """

    values: dict[str, Any]
    computed: set[str]
    reads: bool


def read_task_file(path: Path) -> TaskText:
    """Parse a task file: `data = "folder"` is a literal, `data = os.environ["DATA"]` is computed.

    Raises:
        UserError: The file cannot be read or is not valid Python.
    """
    values: dict[str, Any] = {}
    last: dict[str, ast.stmt] = {}
    for statement in parse(path, "a task file that can be imported").body:
        names = bound_names(statement)
        bound = names & set(NAMES)
        # `from module import *` may bind any of them.
        if EVERYTHING in names:
            bound = set(NAMES)
        for name in bound:
            # A later statement replaces an earlier one, as when Python runs the file.
            values.pop(name, None)
            last[name] = statement
            with suppress(
                ValueError,
                TypeError,
                SyntaxError,
                MemoryError,
                RecursionError,
            ):
                values[name] = ast.literal_eval(_assigned(statement, name))
    computed = set()
    for name, statement in last.items():
        is_assigned = isinstance(statement, ast.Assign | ast.AnnAssign)
        if is_assigned and name not in values:
            computed.add(name)
    # `read = None` is no function.
    reads = "read" in last and "read" not in values
    return TaskText(values, computed, reads)


def _assigned(statement: ast.stmt, name: str) -> ast.expr:
    """Return the expression that `name = value` assigns to a name.

    Raises:
        ValueError: For any other statement.
    """
    match statement:
        case ast.AnnAssign(value=ast.expr() as value):
            return value
        # In `a, b = 1, 2`, a name gets a part of the value.
        case ast.Assign() if all(
            isinstance(target, ast.Name) for target in statement.targets
        ):
            return statement.value
    raise ValueError
