"""The built-in tasks and the defaults of every task."""

from dataclasses import dataclass
from typing import Any, Literal

from scalestudy.errors import UserError
from scalestudy.study.settings import DataSettings, ResolvedData, ResolvedTrain, TrainSettings


@dataclass(frozen=True)
class TaskDefaults:
    """What a task brings where the study file says nothing.

    `kind` is the kind of data: a class for every pixel ("masks") or for every sample ("classes");
    None for a user's own file, which says so itself.
    """

    kind: Literal["masks", "classes"] | None
    source: str | None
    train: dict[str, Any]


BUILT_IN = {
    "unet": TaskDefaults(
        "masks",
        "indents",
        {"epochs": 20, "batch_size": 16, "optimizer": "adam", "learning_rate": 1e-3, "schedule": "steps"},
    ),
    "cnn": TaskDefaults(
        "classes",
        "digits",
        {"epochs": 8, "batch_size": 128, "optimizer": "adam", "learning_rate": 1e-3, "schedule": "constant"},
    ),
}
USERS_OWN = TaskDefaults(
    None,
    None,
    {"epochs": 10, "batch_size": 32, "optimizer": "adam", "learning_rate": 1e-3, "schedule": "constant"},
)


def task_defaults(task: str) -> TaskDefaults:
    """Defaults of a built-in task by its name, or those of a user's file by its path."""
    return BUILT_IN.get(task, USERS_OWN)


def resolved_train(task: str, train: TrainSettings) -> ResolvedTrain:
    """`train` with the task's defaults where it says nothing."""
    given = train.model_dump()
    missing = {key: value for key, value in task_defaults(task).train.items() if given[key] is None}
    return ResolvedTrain.model_validate(given | missing)


def resolved_data(task: str, data: DataSettings) -> ResolvedData:
    """`data` with the task's own source where it names none.

    Raises:
        UserError: If neither names one.
    """
    source = data.source or task_defaults(task).source
    if source is None:
        raise UserError(
            "a source of data",
            f"none for the task {task}",
            'Write source = "FOLDER" under [data], or data = "FOLDER" in the task file.',
        )
    return ResolvedData.model_validate(data.model_dump() | {"source": source})
