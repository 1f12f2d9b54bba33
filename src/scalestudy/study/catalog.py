"""The tasks that have a name, and what a task brings where the study file says nothing."""

import ast
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from scalestudy.study.keys import PLAIN, WrongValue, checked, is_plain
from scalestudy.study.settings import DataSettings, ResolvedData, ResolvedTrain, TrainSettings
from scalestudy.util.errors import UserError
from scalestudy.util.files import contents
from scalestudy.util.registry import Registry

PREFIX = "keras:"
"""Before the name of a model, as a task: "keras:EfficientNetV2B0"."""
MODULE = "scalestudy.tasks.applications"
"""What makes a task of one."""


def is_application(task: str) -> bool:
    """Whether a task asks for a model of `keras.applications`."""
    return task.startswith(PREFIX)


@cache
def applications() -> tuple[str, ...]:
    """Names of the models, by the alphabet; none where Keras is not installed."""
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
    {"unet": "scalestudy.tasks.unet", "cnn": "scalestudy.tasks.cnn", "resnet50": "scalestudy.tasks.resnet50"},
)
"""Task files that have a name: modules of the same form as a user's own file."""
COMMON: dict[str, Any] = {
    "epochs": 10, "batch_size": 32, "optimizer": "adam", "learning_rate": 1e-3, "schedule": "constant",
}  # fmt: skip
"""Training of a task that says nothing of it."""


@dataclass(frozen=True)
class TaskDefaults:
    """What a task brings where the study file says nothing.

    `kind` is the kind of data: a class for every pixel ("masks") or for every sample ("classes"), or what the
    file reads itself ("custom"); it and `source` are None where the task's file does not say so in plain
    literals. `data` and `train` are other keys of these sections. `reads` says whether the file has a
    function `read`, which gives the data.
    """

    kind: Literal["masks", "classes", "custom"] | None
    source: str | None
    train: dict[str, Any]
    data: dict[str, Any] = field(default_factory=dict)
    reads: bool = False


def has_name(task: str) -> bool:
    """Whether a task goes by a name: ours, another package's, or a model of Keras; else it is a file."""
    return task in TASKS or is_application(task)


def is_ours(task: str) -> bool:
    """Whether a task comes with this package: then its file says all in literals, and needs no import."""
    return task in TASKS.built_in() or is_application(task)


def task_file(task: str) -> Path:
    """File of a task, given by its name or by its own path.

    Raises:
        UserError: If a package that offers the task does not hold it.
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
            f"the module {name} of the task {task}", "none", "Mend or uninstall the package that offers it."
        )
    return Path(spec.origin)


def task_defaults(task: str) -> TaskDefaults:
    """What a task brings, read from its file; nothing of it is run.

    Raises:
        UserError: If the file is no Python, or says something that its keys do not take.
    """
    file = task_file(task)
    try:
        changed = file.stat().st_mtime_ns
    except OSError:
        return TaskDefaults(None, None, COMMON)  # a study that was made elsewhere
    return _read(file, changed)


def resolved_train(task: str, train: TrainSettings, *, device: str = "cpu") -> ResolvedTrain:
    """`train` with the task's defaults where it says nothing; on a `device` that is "cpu" or "gpu"."""
    given = train.model_dump()
    brought = {"deterministic": device == "cpu"} | task_defaults(task).train
    missing = {key: value for key, value in brought.items() if given[key] is None}
    return ResolvedTrain.model_validate(given | missing)


def resolved_data(task: str, data: DataSettings) -> ResolvedData:
    """`data` with the task's own source where it names none.

    Raises:
        UserError: If neither names one.
    """
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
    del changed  # makes another entry of a file that was edited
    text = read_task_file(file)
    kind, data, train = (text.values.get(name) for name in ("kind", "data", "train"))
    source = data.get("source") if isinstance(data, dict) else data
    if kind not in ("masks", "classes", "custom", None):
        raise _wrong_task_file('kind = "masks" or "classes"', repr(kind), file)
    if isinstance(source, str) and not is_plain(source):
        raise _wrong_task_file(f"{PLAIN} for data", repr(source[:50]), file)
    return TaskDefaults(
        kind,
        source if isinstance(source, str) else None,
        COMMON | _checked_train({} if train is None else train, file),
        _checked_data(data, file) if isinstance(data, dict) else {},
        text.reads,
    )


def _checked_data(data: dict[str, Any], file: Path) -> dict[str, Any]:
    unknown = data.keys() - DataSettings.model_fields.keys()
    if unknown:
        known = ", ".join(DataSettings.model_fields)
        raise _wrong_task_file(f"keys of [data] in `data` ({known})", f"`{min(unknown, key=str)}`", file)
    return {key: _checked(f"data.{key}", value, file) for key, value in data.items() if key != "source"}


def _checked_train(train: Any, file: Path) -> dict[str, Any]:
    known = [key for key, field in TrainSettings.model_fields.items() if field.default is None]
    if not isinstance(train, dict) or not train.keys() <= set(known):
        wrong = sorted(map(str, train.keys() - set(known))) if isinstance(train, dict) else []
        raise UserError(
            f"train = {{…}} in {file}, with some of {', '.join(known)}",
            f"`{wrong[0]}`" if wrong else repr(train),
            "Correct the task file; all other keys are the study's alone.",
        )
    for key, value in train.items():
        _checked(f"train.{key}", value, file)
    return train


def _checked(name: str, value: Any, file: Path) -> Any:
    try:
        return checked(name, value)
    except WrongValue as wrong:
        raise _wrong_task_file(f"{wrong} for {name}", repr(value), file) from None


def _wrong_task_file(expected: str, received: str, file: Path) -> UserError:
    return UserError(expected, f"{received} in {file}", "Correct the task file.")


NAMES = ("data", "kind", "train", "read")
"""Names of a task file that are wanted before any framework is there."""


@dataclass(frozen=True)
class TaskText:
    """What the text of a task file tells.

    Attributes:
        values: Those of `NAMES` that are given as literals, by name.
        unknown: Those that only running the file would tell.
    """

    values: dict[str, Any]
    unknown: frozenset[str] = frozenset()

    @property
    def reads(self) -> bool:
        """Whether the file has a function `read`, which gives the data."""
        return "read" in self.unknown


def read_task_file(path: Path) -> TaskText:
    """Read a task file: `data = "folder"` is known, `data = os.environ["DATA"]` is not.

    Raises:
        UserError: If it cannot be read, or is no Python.
    """
    try:
        statements = ast.parse(contents(path)).body
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"a task file that can be imported: {path}",
            f"{type(error).__name__}: {error}",
            "Run it with python to see the whole traceback.",
        ) from error
    values: dict[str, Any] = {}
    unknown: set[str] = set()
    for statement in statements:
        for name, value in _bound(statement):
            values.pop(name, None)
            unknown.discard(name)
            try:
                values[name] = ast.literal_eval(value) if value is not None else _refused()
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                unknown.add(name)
    return TaskText(values, frozenset(unknown))


def _refused() -> Any:
    raise ValueError


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """The wanted names that a top-level statement binds, each with its value if that is one expression."""
    if isinstance(statement, ast.Assign):
        plain = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        yield from ((name, statement.value) for name in plain if name in NAMES)
        yield from ((name, None) for name in _stored(statement.targets) if name not in plain)
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        if statement.value is not None and statement.target.id in NAMES:
            yield statement.target.id, statement.value
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        names = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
        yield from ((name, None) for name in NAMES if name in names or "*" in names)
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if statement.name in NAMES:
            yield statement.name, None
    else:
        yield from ((name, None) for name in _stored([statement]))


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    """The wanted names that something among these assigns to, or defines or imports."""
    names = set()
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names & set(NAMES)
