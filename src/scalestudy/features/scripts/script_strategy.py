"""How a script distributes its training, from what it imports and names."""

import ast
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scalestudy.config.task_sources import source_files
from scalestudy.hardware.devices import VISIBLE
from scalestudy.plugins.engines import engine_of_script, find_engines, find_packages
from scalestudy.plugins.strategies import SCRIPT_STRATEGY
from scalestudy.util.errors import UserError
from scalestudy.util.modules import parse_or_none

GUIDE = "docs/guides/distributed-script.md"
"""What to delete and what to write to turn a distributed script into a task."""
OWN = {
    "MultiWorkerMirroredStrategy": "multiworker",
    "CollectiveAllReduceStrategy": "multiworker",
    "MirroredStrategy": "mirrored",
}
"""Strategies by the names of TensorFlow's classes."""
STRATEGIES = ("horovod", "multiworker", "mirrored", "single", SCRIPT_STRATEGY)
"""Strategies under which a script can be started."""
NOT_STARTED = ("ParameterServerStrategy", "TPUStrategy", "CentralStorageStrategy")
"""Strategies of TensorFlow under which scripts are not started."""
CHOOSES_GPU = ("set_visible_devices", VISIBLE)
"""What a script names that chooses the GPU of its process itself."""


class Found(NamedTuple):
    """The strategy of a script.

    Attributes:
        name: Name of the strategy.
        doubt: What else it could have been, for the user; "" without doubt.
        chooses_gpu: Whether the script chooses the GPU of its process, so that it must see all of them.
    """

    name: str
    doubt: str = ""
    chooses_gpu: bool = True


def find_strategy(file: Path, asked: str | None = None) -> Found:
    """Return the strategy that a script uses: what the user asks for, else what its sources name.

    The script may leave the training to a module of its own folder. A script that imports TensorFlow or Keras
    and names no strategy trains alone: "single".

    Raises:
        UserError: The script trains with no known framework, or with a strategy under which it cannot start.
    """
    files = list(source_files(str(file.absolute())).values())
    words = _all_words(files)
    found = Found(asked) if asked else _named(file, files, words)
    return found._replace(chooses_gpu=not words.isdisjoint(CHOOSES_GPU))


def _named(file: Path, files: Sequence[Path], words: set[str]) -> Found:
    """Return the strategy that the sources of a script name."""
    packages: set[str] = set()
    engines: set[str] = set()
    for source in files:
        packages |= find_packages(source)
        engines |= {engine_of_script(source).name} if find_engines(source) else set()
    names = _own_strategies(words)
    if "torch" in engines and not names:
        return Found(SCRIPT_STRATEGY)
    if "horovod" in packages:
        return Found("horovod", _doubt("horovod", names))
    if not engines:
        raise UserError(
            "a script that imports torch, accelerate, lightning, transformers, tensorflow or keras",
            f"{file}, which does not",
            "Put the script first, then its arguments; name the framework in it or in a module beside it.",
        )
    if names:
        return Found(names[0], _doubt(names[0], names[1:]))
    for other in NOT_STARTED:
        if other in words:
            raise UserError(
                "a script with Horovod, MultiWorkerMirroredStrategy or MirroredStrategy",
                f"{file.name}, which names {other}",
                f"Use one of these, or write the model as a task: {GUIDE}.",
            )
    return Found("single")


def _own_strategies(words: set[str]) -> list[str]:
    """Return the strategies whose classes a script names, in the order of `OWN`."""
    names: list[str] = []
    for word, name in OWN.items():
        if word in words and name not in names:
            names.append(name)
    return names


def _doubt(name: str, others: Sequence[str]) -> str:
    if not others:
        return ""
    return (
        f"it names {' and '.join([name, *others])}; started as {name} (--strategy {others[0]} for the other)"
    )


def refuse_alone(file: Path, strategy: str, workers: int) -> None:
    """Refuse to start a script that distributes nothing on several workers.

    Raises:
        UserError: Each worker would train its own model.
    """
    if strategy == "single" and workers > 1:
        raise UserError(
            f"a script that distributes its training, for {workers} workers",
            f"{file.name}, which names neither Horovod nor a strategy of tf.distribute",
            f"Write its model as a task ({GUIDE}), or name its strategy with --strategy.",
        )


def refuse_keras_3(file: Path, strategy: str, variables: Mapping[str, str] = os.environ) -> None:
    """Refuse combinations with Keras 3 that fail only once the training has begun, or train wrongly.

    `fit` of Keras 3 fails under MultiWorkerMirroredStrategy (keras#20585). Horovod's optimizer and callbacks
    for Keras do not work with Keras 3.

    Raises:
        UserError: Names what to use instead.
    """
    files = list(source_files(str(file.absolute())).values())
    words = _all_words(files)
    if _legacy(words, variables) or _keras_major() < 3:
        return
    imported: set[str] = set()
    for source in files:
        imported |= find_modules(source)
    if strategy == "multiworker" and "fit" in words:
        what = "model.fit under MultiWorkerMirroredStrategy, which fails with Keras 3 (keras#20585)"
    elif imported & {"horovod.keras", "horovod.tensorflow.keras"}:
        what = "Horovod's optimizer and callbacks for Keras, which do not work with Keras 3"
    else:
        return
    raise UserError(
        f"Keras 2 for {file.name}",
        what,
        "Install tf_keras and set TF_USE_LEGACY_KERAS=1, or write the model as a task, which works with "
        f"Keras 3: {GUIDE}.",
    )


def _legacy(words: set[str], variables: Mapping[str, str]) -> bool:
    asked = variables.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    return asked or "tf_keras" in words or "TF_USE_LEGACY_KERAS" in words


def _keras_major() -> int:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return int(version("keras").partition(".")[0])
    except (PackageNotFoundError, ValueError):
        return 0


def find_modules(file: Path) -> set[str]:
    """Return the full names of the modules that a file imports."""
    tree = parse_or_none(file)
    modules: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return modules


def _all_words(files: Sequence[Path]) -> set[str]:
    words: set[str] = set()
    for file in files:
        words |= _words(file)
    return words


def _words(file: Path) -> set[str]:
    """Return the names, attributes, imported packages and texts of a file, without its comments."""
    tree = parse_or_none(file)
    words: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Name():
                words.add(node.id)
            case ast.Attribute():
                words.add(node.attr)
            case ast.alias():
                words |= {*node.name.split(".")}
            case ast.Constant(value=str()):
                words.add(str(node.value))
    return words
