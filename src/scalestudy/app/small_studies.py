"""Studies without a study file: the first study that `init` writes for this machine, and that of `train`."""

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalestudy.config import keys
from scalestudy.config.catalog import PREFIX, TASKS, has_name, task_defaults
from scalestudy.config.file import Study
from scalestudy.config.parse import study_of
from scalestudy.config.settings import DataSettings
from scalestudy.config.toml_text import toml_line
from scalestudy.data.sources import named_source
from scalestudy.data.sources.locate import find_source
from scalestudy.plugins.engines import DEFAULT, engine_of_script, engine_traits, installed_engine
from scalestudy.util.errors import UserError

MOST_WORKERS = 8
"""A larger first study would take longer and show little more."""
DIGITS = "digits"
"""Learned within seconds, by steps that are long enough for two workers to divide them."""
SMALL_TASKS = {"classes": ("cnn", [64, 64], 32), "masks": ("unet", [128, 128], 8)}
"""Task, image size and batch size for each kind of data: small enough for minutes on two cores."""


@dataclass(frozen=True)
class FirstStudy:
    """The text of a first study, and a sentence with its number of points and its resources."""

    text: str
    summary: str


def first_study(
    task: str | None, source: str | None = None, *, gpus: int, cores: int, folder: Path = Path()
) -> FirstStudy:
    """Make a study for this machine.

    Args:
        task: Its task; None for one that suits the data.
        source: Its data; None for the task's own, or for digits if there is no task.
        gpus: Usable GPUs; if there are any, they are the workers.
        cores: Usable cores.
        folder: Folder of the study file.

    Raises:
        UserError: The source is missing, or neither images with classes nor images with masks.
    """
    data, train = [], []
    if task is None:
        task, size, batch = _task_for(source, folder)
        source = source or DIGITS
        data = [f"{toml_line('image_size', size)}  # height, width; small, for a study of minutes"]
        train = ["epochs = 10", toml_line("batch_size", batch)]
    workers = [count for count in (1, 2, 4, MOST_WORKERS) if count <= (gpus or cores)]
    engine = _engine_of(task, folder) or installed_engine()
    strategy = engine_traits(engine).default_strategy
    lines = [
        "# What is trained: a name, or the path of your own Python file.",
        f"# Names: {', '.join([*TASKS.names(), f'{PREFIX}EfficientNetV2B0'])}",
        toml_line("task", task),
        "",
        "[data]",
        f"{toml_line('source', source)}  # `scalestudy data show FILE` says what it holds"
        if source
        else '# source = "FOLDER"  # images; without it, the data of the task',
        *data,
        "",
        "[train]",
        *train,
        'batch = "global"  # all workers together: as many updates on any number of workers',
        "",
        "[launch]",
        '# device = "cpu"  # default: GPUs if there are any',
        "",
        "# Each combination of these values is a point, which is trained and measured.",
        "[sweep]",
        f"{toml_line('strategy', [strategy])}  # `scalestudy check --strategies` lists all",
        toml_line("workers", workers),
        f"{toml_line('seed', [0, 1, 2])}  # repetitions, for confidence intervals",
        "# Any key may have a list of values here: learning_rate = [0.001, 0.01]",
        "",
        "# All keys, with their defaults: docs/reference/study-file.md",
    ]
    what = f"{gpus} GPU{'s' * (gpus != 1)}" if gpus else f"{cores} core{'s' * (cores != 1)}"
    return FirstStudy("\n".join(lines) + "\n", f"{3 * len(workers)} points on {what}")


def _task_for(source: str | None, folder: Path) -> tuple[str, list[int], int]:
    if source is None:
        return "cnn", [24, 24], 128
    kind = find_source(DataSettings(source=source), base=folder).kind
    if kind not in SMALL_TASKS:
        expected, action = "images with classes or masks", "Write a task file, and name it with --task."
        raise UserError(expected, f"{source}, read by code of its own", action)
    return SMALL_TASKS[kind]


def _engine_of(task: str, folder: Path) -> str | None:
    """Engine that a task names or imports, unless it is the default one; a path is relative to `folder`."""
    brought = task_defaults(task if has_name(task) else str(folder / task))
    imported = engine_of_script(brought.file, {}).name
    return brought.engine or (imported if imported != DEFAULT else None)


HIDDEN = ("data.source", "data.seed", "launch.on", "launch.site")
"""Keys that have their own options, or that do not apply to a single run on this machine."""


def train_options() -> Iterable[str]:
    """One line for every key of a study file that is an option: its name, values and meaning."""
    for section, model in keys.SECTIONS.items():
        for key, field in model.model_fields.items():
            name = f"{section}.{key}"
            if name not in HIDDEN:
                meaning = " ".join((field.description or "").split())
                yield f"--{key.replace('_', '-')}: {keys.describe_key(name)}. {meaning}"


def option_values(arguments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse settings by section from `["--batch-size", "8", "--xla", "--image-size", "256", "256"]`.

    Raises:
        UserError: An option is not a key of a study file.
    """
    settings: dict[str, dict[str, Any]] = {}
    for option, words in _group(arguments):
        section, key, off = _key(option)
        _refuse_commas(option, f"{section}.{key}", words)
        text = "false" if off else " ".join(words) or "true"
        values = [_value(section, key, word) for word in words]
        settings.setdefault(section, {})[key] = values if len(words) > 1 else _value(section, key, text)
    return settings


def one_point_study(
    task: str, source: str | None, sweep: dict[str, Any], settings: dict[str, dict[str, Any]]
) -> Study:
    """Make a study with a single point; paths are relative to the working folder.

    `sweep` has one `workers` and `seed`, and one `strategy` unless the own way of the task's engine is meant.
    If `source` is None, the task's own is used.

    Raises:
        UserError: A key does not accept its value.
    """
    if source is not None:
        absolute = source if named_source(source) else os.path.abspath(os.path.expanduser(source))
        settings = settings | {"data": settings.get("data", {}) | {"source": absolute}}
    name = Path(task).stem.strip("._") or "task"
    table = {"task": task, "sweep": sweep, **settings}
    study = study_of(_literal(table), Path(f"{name}.toml"))
    return study.model_copy(update={"name": f"{name}-{study.sweep.strategy[0]}-w{sweep['workers']}"})


def _group(arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    groups: list[tuple[str, list[str]]] = []
    for argument in arguments:
        if argument.startswith("--"):
            option, equals, word = argument.partition("=")
            groups.append((option, [word] if equals else []))
        elif groups:
            groups[-1][1].append(argument)
        else:
            raise UserError("options", f"the argument {argument}", "Write --name value.")
    return groups


def _refuse_commas(option: str, name: str, words: Sequence[str]) -> None:
    """Refuse `32,32` if the key accepts a list of two numbers."""
    if len(words) != 1 or not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})+", words[0]):
        return
    numbers = words[0].split(",")
    with suppress(keys.WrongValue):
        keys.check_value(name, [int(number) for number in numbers])
        right = f"{option} {' '.join(numbers)}"
        raise UserError("numbers separated by spaces", f"{option} {words[0]}", f"Write {right}.")


def _key(option: str) -> tuple[str, str, bool]:
    """Section and key of an option, and whether it switches the key off (`--no-xla`)."""
    word = option.removeprefix("--").replace("-", "_")
    for spelled in dict.fromkeys((word, word.removeprefix("no_"))):
        name = keys.full_name(spelled)
        if name is not None and name not in HIDDEN:
            section, key = name.split(".")
            return section, key, spelled != word
    options = ("task", "data", "engine", "strategy", "workers", "seed", "out", "report", "keys")
    known = [key for model in keys.SECTIONS.values() for key in model.model_fields]
    close = keys.suggestion(word, [*options, *known])
    action = (
        f"Did you mean --{close.replace('_', '-')}?" if close else "`scalestudy train --keys` lists them."
    )
    raise UserError("a known option", option, action)


def _value(section: str, key: str, word: str) -> Any:
    """Read the word as TOML if the key accepts that or if it is a number; otherwise return it as a string."""
    try:
        value = tomllib.loads(f"value = {word}")["value"]
        keys.check_value(f"{section}.{key}", value)
    except keys.WrongValue:
        return value if word[:1] in "-+.0123456789" else word
    except (ValueError, RecursionError):  # not TOML, or an integer with thousands of digits
        return word
    return value


def _literal(value: Any) -> Any:
    """Protect strings from the expansion of variables, since the shell has already expanded them."""
    if isinstance(value, dict):
        return {key: _literal(inner) for key, inner in value.items()}
    return value.replace("$", "$$") if isinstance(value, str) else value
