"""The gate for what records say is to be executed: commands that start processes by a record ask here.

Folders of studies and runs, and files of models, come from anywhere: nothing in them allows that code runs.
What the user names on the command line may run, and a task file with which this user has trained where it is.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from scalestudy.config.catalog import has_name
from scalestudy.config.point import Point
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.record_file import file_checksum
from scalestudy.store.trained_code import was_trained
from scalestudy.util.errors import UserError

Rule = Literal[
    "asked or trained with", "asked", "never", "installed", "as numbers", "compared"
]
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "task": "asked or trained with",
        "sources": "compared",
        "data.read": "never",
        "data.source": "never",
        "data.cache": "never",
        "launch.environments": "asked",
        "launch.hosts": "never",
        "launch.site": "never",
        "launch.on": "installed",
        "engine": "installed",
        "strategy": "installed",
        "terms.implementation": "installed",
        "train.weights": "as numbers",
        "files.prepared": "as numbers",
        "files.split": "as numbers",
        "files.initial": "as numbers",
        "model.keras": "as numbers",
        "model.pt": "as numbers",
        "checkpoint.npz": "as numbers",
        "job.queue": "installed",
        "job.script": "never",
    }
)
"""What decides which code runs, in records and in files beside them, by its key. SECURITY.md explains it."""
NO_DATA = {"read": None, "cache": None}
"""Keys of [data] that no process gets by a record: the data are prepared."""


@dataclass(frozen=True)
class Permission:
    """What the user has named on the command line, and what may therefore run.

    Attributes:
        task: Task file (`--task`).
        environment: Folder of a virtual environment (`--environment`).

    Raises:
        UserError: If one of them does not exist.
    """

    task: Path | None = None
    environment: Path | None = None

    def __post_init__(self) -> None:
        if self.task is not None and not self.task.is_file():
            raise UserError(
                "a task file",
                f"{self.task}, which is no file",
                "Correct --task.",
            )
        if self.environment is None:
            return
        if not (self.environment / "bin" / "python").is_file():
            raise UserError(
                "the folder of a virtual environment, with bin/python",
                f"{self.environment}",
                "Correct --environment.",
            )

    @property
    def environment_path(self) -> str | None:
        """Absolute path of the environment; None for that of this process."""
        if self.environment is None:
            return None
        return os.path.abspath(self.environment)


NOTHING = Permission()


class PermittedTask(NamedTuple):
    """A task whose code may run: its name or the path of its file, "" for none; and remarks."""

    task: str
    notes: tuple[str, ...] = ()


def permit_task(
    recorded: str,
    checksum: str = "",
    permission: Permission = NOTHING,
) -> PermittedTask:
    """Return the task that may run in the place of a recorded one.

    Args:
        recorded: Name of a task, or the path of its file, in a record.
        checksum: SHA-256 of that file when it was trained with, to note that it has changed; "" if not known.
        permission: What the user has named.
    """
    # A name is of an installed package, never of a file.
    if has_name(recorded):
        return PermittedTask(recorded)
    file = permission.task
    if file is None:
        file = Path(recorded)
        # The place counts, too: an archive may hold a file of the same content beside other modules.
        if not file.is_file() or not was_trained(file):
            seen = f"{file}: it is not there, and"
            if file.is_file():
                seen = f"{file}, which"
            note = f"The model's own code is not run: {seen} you have not trained with. --task allows it."
            return PermittedTask("", (note,))
    file = file.absolute()
    # The user may have edited the file since, knowingly: a note, not a refusal.
    if checksum not in ("", file_checksum(file)):
        changed = f"Warning: {file}, whose code loads the model, has changed since it was trained."
        return PermittedTask(str(file), (changed,))
    return PermittedTask(str(file))


def without_sources(record: ModelRecord) -> ModelRecord:
    """Return a recorded model without the keys of [data] that no process gets by a record."""
    withheld = {*NO_DATA, "source"}
    data = {key: value for key, value in record.data.items() if key not in withheld}
    return record.model_copy(update={"data": data})


def permit_point(point: Point, permission: Permission = NOTHING) -> Point:
    """Return a recorded point with which workers may be started.

    Keys under which code could run are those that the user has named, or left out.

    Raises:
        UserError: If the user must name the task file or the environment first.
    """
    task = permit_task(point.task, permission=permission).task
    if not task:
        raise UserError(
            f"a task whose code may run: the record of {point.name} names {point.task}",
            "a file with which you have not trained there",
            f"Read it, then name it: --task {point.task}",
        )
    # The Python of an environment runs whatever its folder holds.
    recorded, named = point.environment, permission.environment_path
    if recorded is not None and named is None:
        raise UserError(
            f"--environment DIR: the record of {point.name} names {recorded}, which is not started unasked",
            "none",
            f"Add --environment {recorded}, if you trust it.",
        )
    launch: dict[str, Any] = {"environments": None, "hosts": None, "site": None}
    if named:
        launch["environments"] = {point.engine: named}
    # Hosts and sites of a record could name any machine.
    allowed = point.on(launch=point.launch.model_copy(update=launch))
    data = point.data.model_copy(update=NO_DATA | {"source": "none"})
    return allowed.model_copy(update={"task": task, "data": data})
