"""The first study, which `init` writes for this machine."""

from dataclasses import dataclass
from math import ceil
from pathlib import Path

from scalestudy.config.catalog import PREFIX, TASKS, has_name
from scalestudy.config.settings import DataSettings
from scalestudy.config.task_defaults import task_defaults
from scalestudy.config.toml_text import toml_line
from scalestudy.data.sources.locate import find_source
from scalestudy.data.sources.source import Contents, findings_of
from scalestudy.plugins.engines import (
    DEFAULT,
    engine_of_script,
    engine_traits,
    installed_engine,
)
from scalestudy.util.errors import UserError
from scalestudy.util.text import plural

MOST_WORKERS = 8
"""A larger first study would take longer and show little more."""
PLANNED_EPOCHS = 200
"""Epochs of the training that a first study plans: usual for small models on own images."""
DIGITS = "digits"
"""Learned within seconds, by steps that are long enough for two workers to divide them."""
SMALL_TASKS = {"classes": ("cnn", [64, 64], 32), "masks": ("unet", [128, 128], 8)}
"""Task, image size and batch size for each kind of data: small enough for minutes on two cores."""
UNET_STEP = 16
"""Image sizes of the U-Net are multiples of this, which it halves four times."""


@dataclass(frozen=True)
class FirstStudy:
    """The text of a first study, a sentence with its number of points and its resources, and notes."""

    text: str
    summary: str
    notes: tuple[str, ...] = ()


def first_study(
    task: str | None,
    source: str | None = None,
    *,
    gpus: int,
    cores: int,
    folder: Path = Path(),
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
    notes: tuple[str, ...] = ()
    if task is None:
        (task, size, batch), notes = _task_for(source, folder)
        source = source or DIGITS
        image_size = toml_line("image_size", size)
        data = [f"{image_size}  # height, width; small, for a study of minutes"]
        train = ["epochs = 10", toml_line("batch_size", batch)]
    held = f"{cores} {plural('core', cores)}"
    if gpus:
        held = f"{gpus} {plural('GPU', gpus)}"
    source_line = '# source = "FOLDER"  # images; without it, the data of the task'
    if source:
        source_line = f"{toml_line('source', source)}  # `scalestudy data show FILE` says what it holds"
    # More would share cores or GPUs, and their times would not count.
    workers = [count for count in (1, 2, 4, MOST_WORKERS) if count <= (gpus or cores)]
    engine = _engine_of(task, folder) or installed_engine()
    strategy = engine_traits(engine).default_strategy
    lines = [
        "# What is trained: a name, or the path of your own Python file.",
        f"# Names: {', '.join([*TASKS.names(), f'{PREFIX}EfficientNetV2B0'])}",
        toml_line("task", task),
        "",
        "[data]",
        source_line,
        *data,
        "",
        "[train]",
        *train,
        'batch = "global"  # all workers together: as many updates on any number of workers',
        "",
        "# The training that you will pay for, which may be longer than this study.",
        "[plan]",
        toml_line("epochs", PLANNED_EPOCHS),
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
        "# All keys, with their defaults: scalestudy docs study-file",
    ]
    summary = f"{3 * len(workers)} points on {held}"
    return FirstStudy("\n".join(lines) + "\n", summary, notes)


def _task_for(
    source: str | None, folder: Path
) -> tuple[tuple[str, list[int], int], tuple[str, ...]]:
    """Return the task, image size and batch size for a source, and how the source is understood."""
    if source is None:
        return ("cnn", [24, 24], 128), ()
    found = find_source(DataSettings(source=source), base=folder)
    kind = found.kind
    if kind not in SMALL_TASKS:
        seen = f"{source}, read by code of its own"
        action = "Write a task file, and name it with --task."
        raise UserError("images with classes or masks", seen, action)
    findings = findings_of(found)
    notes = list(findings.all_remarks)
    if findings.understood:
        notes.insert(0, f"{source}: {findings.understood}")
    task, size, batch = SMALL_TASKS[kind]
    step = 1
    # Its skip connections need sides that can be halved without a remainder.
    if kind == "masks":
        step = UNET_STEP
    small = _not_enlarged(size, found.contents(), step)
    return (task, small, batch), tuple(notes)


def _not_enlarged(size: list[int], contents: Contents, step: int) -> list[int]:
    """Return the size, or that of the largest images if it is smaller, in multiples of `step`."""
    sizes = contents.sizes or [contents.input_shape[:2]]
    limited = []
    # All heights, then all widths.
    by_side = zip(*sizes, strict=True)
    for side, sides in zip(size, by_side, strict=True):
        most = step * ceil(max(sides) / step)
        limited.append(min(side, most))
    return limited


def _engine_of(task: str, folder: Path) -> str | None:
    """Engine that a task names or imports, unless it is the default one; a path is relative to `folder`."""
    file = task
    if not has_name(task):
        file = str(folder / task)
    defaults = task_defaults(file)
    imported = engine_of_script(defaults.file, {}).name
    if defaults.engine:
        return defaults.engine
    if imported != DEFAULT:
        return imported
    return None
