"""The tasks with a name, and the defaults of a task for keys that the study file leaves out."""

import ast
import importlib.util
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from scalestudy.study.engines import engine_names
from scalestudy.study.keys import PLAIN, WrongValue, checked, is_plain
from scalestudy.study.settings import DataSettings, ResolvedData, ResolvedTrain, TrainSettings
from scalestudy.util.errors import UserError
from scalestudy.util.files import contents
from scalestudy.util.registry import Registry

PREFIX = "keras:"
"""Prefix of a Keras model's name as a task: "keras:EfficientNetV2B0"."""
MODULE = "scalestudy.tasks.applications"
"""Module that makes a task from such a model."""


def is_application(task: str) -> bool:
    """Whether a task is a model of `keras.applications`."""
    return task.startswith(PREFIX)


@cache
def applications() -> tuple[str, ...]:
    """Names of the models in alphabetical order; empty if Keras is not installed."""
    spec = importlib.util.find_spec("keras")
    if spec is None or not spec.submodule_search_locations:
        return ()
    file = Path(next(iter(spec.submodule_search_locations)), "applications", "__init__.py")
    try:
        statements = ast.parse(file.read_text("utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return ()
    imported = [node for node in statements if isinstance(node, ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imported for alias in node.names}
    return tuple(sorted(name for name in names if name[:1].isupper()))


TASKS: Registry[Any] = Registry(
    "scalestudy.tasks",
    {
        "unet": "scalestudy.tasks.unet",
        "cnn": "scalestudy.tasks.cnn",
        "resnet50": "scalestudy.tasks.resnet50",
        "torch_unet": "scalestudy.tasks.torch_unet",
        "torch_cnn": "scalestudy.tasks.torch_cnn",
    },
)
"""Task files with a name: modules in the same form as a user's own file."""
COMMON: dict[str, Any] = {
    "epochs": 10, "batch_size": 32, "optimizer": "adam", "learning_rate": 1e-3, "schedule": "constant",
}  # fmt: skip
"""Training settings of a task that gives none."""


@dataclass(frozen=True)
class TaskDefaults:
    """Defaults of a task for keys that the study file leaves out.

    Attributes:
        kind: Kind of data: a class for every pixel ("masks") or for every sample ("classes"), or data that
            the file reads itself ("custom"). Like `source`, None if the file has no literal for it.
        source: Source of the data.
        train: Keys of [train].
        data: Other keys of [data].
        reads: Whether the file has a function `read` that returns the data.
        metrics: Names of metrics; () if the file has no literal for them.
        engine: Engine that computes its model; None for any engine that computes Keras models.
    """

    kind: Literal["masks", "classes", "custom"] | None = None
    source: str | None = None
    train: dict[str, Any] = field(default_factory=COMMON.copy)
    data: dict[str, Any] = field(default_factory=dict)
    reads: bool = False
    metrics: tuple[str, ...] = ()
    engine: str | None = None


def has_name(task: str) -> bool:
    """Whether a task has a name: built in, from another package, or a Keras model; otherwise it is a file."""
    return task in TASKS or is_application(task)


def is_ours(task: str) -> bool:
    """Whether a task is part of this package; its file then has only literals and needs no import."""
    return task in TASKS.built_in() or is_application(task)


def task_file(task: str) -> Path:
    """Return the file of a task, given by name or by path.

    Raises:
        UserError: The module of a named task is missing from the package that offers it.
    """
    if not has_name(task):
        return Path(task)
    name = MODULE if is_application(task) else TASKS.module(task)
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        spec = None
    if spec is None or spec.origin is None:
        raise UserError(
            f"the module {name} of the task {task}",
            "none",
            "Repair or uninstall the package that provides it.",
        )
    return Path(spec.origin)


def task_defaults(task: str) -> TaskDefaults:
    """Read the defaults of a task from its file, without running it.

    Raises:
        UserError: The file is not valid Python, or has values that its keys do not accept.
    """
    file = task_file(task)
    try:
        return _read(file, file.stat().st_mtime_ns)
    except OSError:
        return TaskDefaults()  # the study was made on another machine


def resolved_train(task: str, train: TrainSettings, *, device: str = "cpu") -> ResolvedTrain:
    """Complete `train` with the task's defaults; `device` is "cpu" or "gpu"."""
    given = train.model_dump()
    brought = {"deterministic": device == "cpu"} | task_defaults(task).train
    missing = {key: value for key, value in brought.items() if given[key] is None}
    return ResolvedTrain.model_validate(given | missing)


def resolved_data(task: str, data: DataSettings) -> ResolvedData:
    """Complete `data` with the task's defaults and source; raises UserError if neither names a source."""
    brought = task_defaults(task)
    read = data.read or (str(task_file(task)) if brought.reads else None)
    source = data.source or brought.source or read
    if source is None:
        raise UserError(
            "a source of data",
            f"none for the task {task}",
            'Write source = "FOLDER" under [data], or data = "FOLDER" in the task file.',
        )
    absent = {key: value for key, value in brought.data.items() if key not in data.model_fields_set}
    return ResolvedData.model_validate(data.model_dump() | absent | {"source": source, "read": read})


@lru_cache(maxsize=64)
def _read(file: Path, changed: int) -> TaskDefaults:
    del changed  # part of the cache key, so that an edited file is read again
    text = read_task_file(file)
    computed = next((name for name in ("train", "kind", "engine") if name in text.computed), None)
    if computed is not None:
        expected = f"only literals in `{computed}`, which is read without running the file"
        raise UserError(
            expected, f"a computed value in {file}", "Write values and names in quotes, not code."
        )
    kind, data, train, metrics = (text.values.get(name) for name in ("kind", "data", "train", "metrics"))
    settings = dict(data) if isinstance(data, dict) else {"source": data} if isinstance(data, str) else {}
    source = settings.pop("source", None)
    if kind not in ("masks", "classes", "custom", None):
        raise _wrong_task_file('kind = "masks" or "classes"', repr(kind), file)
    if isinstance(source, str) and not is_plain(source):
        raise _wrong_task_file(f"{PLAIN} for data", repr(source[:50]), file)
    open_keys = [key for key, field in TrainSettings.model_fields.items() if field.default is None]
    return TaskDefaults(
        kind,
        source if isinstance(source, str) else None,
        COMMON | _checked("train", {} if train is None else train, open_keys, file),
        _checked("data", settings, DataSettings.model_fields, file),
        text.reads,
        tuple(metrics)
        if isinstance(metrics, list) and all(isinstance(name, str) for name in metrics)
        else (),
        _engine(text.values.get("engine"), file),
    )


def _engine(name: Any, file: Path) -> str | None:
    if name is None or name in engine_names():
        return None if name is None else str(name)
    expected = " or ".join(f'"{known}"' for known in engine_names())
    raise _wrong_task_file(f"{expected} for engine", repr(name), file)


def _checked(section: str, given: Any, known: Collection[str], file: Path) -> dict[str, Any]:
    """Validate a section of a task file, each key as in the study file."""
    if not isinstance(given, dict):
        raise _wrong_task_file(f"{section} = {{…}}", repr(given), file)
    for key, value in given.items():
        if key not in known:
            expected = f"keys of [{section}] that tasks may set ({', '.join(known)}) in `{section}`"
            raise _wrong_task_file(expected, f"`{key}`", file)
        try:
            checked(f"{section}.{key}", value)
        except WrongValue as wrong:
            raise _wrong_task_file(f"{wrong} for {section}.{key}", repr(value), file) from None
    return given


def _wrong_task_file(expected: str, received: str, file: Path) -> UserError:
    return UserError(expected, f"{received} in {file}", "Correct the task file.")


NAMES = ("data", "kind", "train", "read", "metrics", "engine")
"""Names of a task file that are needed before any framework is imported."""


class TaskText(NamedTuple):
    """Which of `NAMES` a task file gives as literals, and which have a value only when the file runs.

    Attributes:
        computed: Those of `unknown` that were last assigned an expression, as in `train = dict(epochs=5)`.
    """

    values: dict[str, Any]
    unknown: set[str]
    computed: set[str]

    @property
    def reads(self) -> bool:
        """Whether the file has a function `read` that returns the data."""
        return "read" in self.unknown


def read_task_file(path: Path) -> TaskText:
    """Parse a task file: `data = "folder"` is known, `data = os.environ["DATA"]` is not.

    Raises:
        UserError: The file cannot be read or is not valid Python.
    """
    try:
        statements = ast.parse(contents(path), path.name).body
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"a task file that can be imported: {path}",
            f"{type(error).__name__}: {error}",
            "Run it with python to see the whole traceback.",
        ) from error
    text = TaskText({}, set(), set())
    for statement in statements:
        for name in _bound(statement) & set(NAMES):
            text.values.pop(name, None)
            text.unknown.add(name)
            text.computed.discard(name)
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                text.computed.add(name)
            with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                text.values[name] = ast.literal_eval(_assigned(statement, name))
                text.unknown.discard(name)
                text.computed.discard(name)
    return text


def _assigned(statement: ast.stmt, name: str) -> ast.expr:
    """Return the expression that `name = value` or `name, other = value, another` assigns to a name.

    Raises:
        ValueError: For any other statement.
    """
    match statement:
        case ast.AnnAssign(value=ast.expr() as value):
            return value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            names = [target.id if isinstance(target, ast.Name) else "" for target in targets]
            # A starred one among them is no literal, or has no name.
            if len(names) == len(values) and names.count(name) == 1 and all(names):
                return values[names.index(name)]
        case ast.Assign() if all(isinstance(target, ast.Name) for target in statement.targets):
            return statement.value
    raise ValueError


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement assigns, defines or imports; all of `NAMES` for `*`."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names |= set(NAMES) if node.name == "*" else {(node.asname or node.name).partition(".")[0]}
    return names
