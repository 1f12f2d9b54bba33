"""How a script distributes its training, from what it imports and names."""

import ast
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scalestudy.config.task_sources import source_files
from scalestudy.hardware.devices import VISIBLE
from scalestudy.plugins.engines import engine_of_script, find_engines, find_packages
from scalestudy.plugins.strategies import REGISTRY, SCRIPT_STRATEGY, traits
from scalestudy.plugins.traits import Traits
from scalestudy.util.errors import UserError
from scalestudy.util.syntax import parse_or_none

GUIDE = "`scalestudy docs guides/distributed-script`"
"""What to delete and what to write to turn a distributed script into a task."""
FIT_FAILS_UNDER = "MultiWorkerMirroredStrategy"
"""Class of TensorFlow under which `fit` of Keras 3 fails."""
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
    if asked:
        found = Found(asked)
    else:
        found = _named(file, files, words)
    return found._replace(chooses_gpu=not words.isdisjoint(CHOOSES_GPU))


def _named(file: Path, files: Sequence[Path], words: set[str]) -> Found:
    """Return the strategy that the sources of a script name."""
    packages: set[str] = set()
    engines: set[str] = set()
    for source in files:
        packages |= find_packages(source)
        # A module beside the script may train with no framework at all.
        if find_engines(source):
            engines.add(engine_of_script(source).name)
    names = _named_strategies(words)
    if "torch" in engines and not names:
        return Found(SCRIPT_STRATEGY)
    for row in _rows():
        if row.library in packages and row.starts_scripts:
            return Found(row.name, _doubt(row.name, names))
    if not engines:
        raise UserError(
            "a script that imports torch, accelerate, lightning, transformers, tensorflow or keras",
            f"{file}, which does not",
            "Put the script first, then its arguments; name the framework in it or in a module beside it.",
        )
    if names:
        return Found(names[0], _doubt(names[0], names[1:]))
    for row in _rows():
        for word in row.script_classes:
            if word in words:
                raise UserError(
                    "a script with Horovod, MultiWorkerMirroredStrategy or MirroredStrategy",
                    f"{file.name}, which names {word}",
                    f"Use one of these, or write the model as a task: {GUIDE}.",
                )
    return Found(_alone())


def startable_strategies() -> list[str]:
    """Return the names of the strategies under which a script can be started."""
    return [row.name for row in _rows() if row.starts_scripts]


def _rows() -> list[Traits]:
    """Return all strategies, those across nodes first: a script that names two of them asks for that one."""
    across = []
    within = []
    for row in REGISTRY.items():
        if row.spans_nodes:
            across.append(row)
        else:
            within.append(row)
    return across + within


def _named_strategies(words: set[str]) -> list[str]:
    """Return the startable strategies whose classes a script names."""
    named = []
    for row in _rows():
        if row.starts_scripts and not words.isdisjoint(row.script_classes):
            named.append(row.name)
    return named


def _alone() -> str:
    """Return the strategy of a script that trains alone."""
    alone = [row for row in _rows() if row.starts_scripts and row.most_workers == 1]
    return alone[0].name


def _doubt(name: str, others: Sequence[str]) -> str:
    if not others:
        return ""
    both = " and ".join([name, *others])
    return f"it names {both}; started as {name} (--strategy {others[0]} for the other)"


def names_joining(file: Path, strategy: str) -> bool:
    """Return whether a script, or a module beside it, names anything by which its processes join."""
    row = traits(strategy)
    ends = (*row.joined_by, *row.script_classes)
    if row.library:
        ends = (*ends, row.library)
    words = _all_words(list(source_files(str(file.absolute())).values()))
    # By their ends, since libraries derive from what joins: `SFTTrainer` of trl.
    return any(word.endswith(ends) for word in words)


def refuse_alone(file: Path, strategy: str, workers: int) -> None:
    """Refuse to start a script that distributes nothing on several workers.

    Raises:
        UserError: Each worker would train its own model.
    """
    if strategy == _alone() and workers > 1:
        raise UserError(
            f"a script that distributes its training, for {workers} workers",
            f"{file.name}, which names neither Horovod nor a strategy of tf.distribute",
            f"Write its model as a task ({GUIDE}), or name its strategy with --strategy.",
        )


def refuse_keras_3(
    file: Path,
    strategy: str,
    variables: Mapping[str, str] = os.environ,
) -> None:
    """Refuse combinations with Keras 3 that fail only once the training has begun, or train wrongly.

    `fit` of Keras 3 fails under MultiWorkerMirroredStrategy (keras#20585). Horovod's optimizer and callbacks
    for Keras do not work with Keras 3.

    Raises:
        UserError: Names what to use instead.
    """
    if _keras_major() < 3:
        return
    files = list(source_files(str(file.absolute())).values())
    words = _all_words(files)
    modules_of = {source: find_modules(source) for source in files}
    imported: set[str] = set()
    for modules in modules_of.values():
        imported |= modules
    if FIT_FAILS_UNDER in traits(strategy).script_classes and "fit" in words:
        what = (
            f"model.fit under {FIT_FAILS_UNDER}, which fails with Keras 3 (keras#20585)"
        )
    elif imported & {"horovod.keras", "horovod.tensorflow.keras"}:
        what = "Horovod's optimizer and callbacks for Keras, which do not work with Keras 3"
    else:
        return
    # TF_USE_LEGACY_KERAS makes `tf.keras` Keras 2, but `import keras` stays Keras 3.
    if _legacy(words, variables):
        mixed = []
        for source, modules in modules_of.items():
            if "keras" in _packages(modules):
                mixed.append(source.name)
        if "tf_keras" in words or not mixed:
            return
        raise UserError(
            f"tf_keras in the imports of {' and '.join(mixed)}",
            "keras, which is Keras 3 whatever TF_USE_LEGACY_KERAS says",
            "Write tf_keras for keras there: from tf_keras.optimizers import Adam.",
        )
    raise UserError(
        f"Keras 2 for {file.name}",
        what,
        "Install tf_keras and set TF_USE_LEGACY_KERAS=1, or write the model as a task, which works with "
        f"Keras 3: {GUIDE}.",
    )


def _packages(modules: set[str]) -> set[str]:
    """Return the packages of modules: "keras" of "keras.optimizers"."""
    return {module.partition(".")[0] for module in modules}


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
    if tree is None:
        return modules
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules.add(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
            # What is imported from a package may be a module, too.
            for alias in node.names:
                modules.add(f"{node.module}.{alias.name}")
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
    if tree is None:
        return words
    for node in ast.walk(tree):
        match node:
            case ast.Name():
                words.add(node.id)
            case ast.Attribute():
                words.add(node.attr)
            case ast.alias():
                words.update(node.name.split("."))
            case ast.Constant(value=str()):
                # Names stand in texts, too: os.environ["CUDA_VISIBLE_DEVICES"], __import__("tf_keras").
                words.add(str(node.value))
    return words
