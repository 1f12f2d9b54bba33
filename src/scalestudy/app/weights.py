"""Weights of a task, fetched before its first run."""

from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.app.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scalestudy.data.store.prepared import Prepared
    from scalestudy.study.settings import ResolvedTrain


def fetch_weights(
    task: str,
    engine: str,
    train: "ResolvedTrain",
    prepared: str,
    listener: Listener,
    *,
    again: bool = False,
) -> None:
    """Build a model once, so that its pretrained weights are here: not that of our tasks that have none.

    Without the framework it says so and goes on: weights may have been fetched elsewhere.

    Args:
        task: Task of the study.
        engine: What computes it.
        train: How it is trained, by which weights.
        prepared: Folder of the prepared data set that its model is built for.
        listener: Is told.
        again: Build it also if that was done before for this file and data.

    Raises:
        UserError: If the model cannot be built.
    """
    from scalestudy.data.store.prepared import Prepared
    from scalestudy.launch.describe import build_task
    from scalestudy.study.catalog import has_name, task_file
    from scalestudy.study.engines import engine_traits

    if _has_none(task, train):
        return
    _warn_of_scaling(task, train, listener)
    info = _info(Prepared.open(prepared), train)
    stamp = _stamp(task, engine, info)
    if stamp.exists() and not again:
        return
    if engine_traits(engine).missing_software():
        _note_unbuilt(task, engine, listener)
        return
    with listener.building(task):
        asked = {"prepared": prepared, "train": train.model_dump(mode="json")}
        built = build_task(task if has_name(task) else task_file(task), asked)
    for note in built.notes:
        listener.note(note)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()


def refuse_missing_weights(
    task: str, engine: str, train: "ResolvedTrain", prepared: str, command: str, listener: Listener
) -> None:
    """Refuse a task whose model was never built here: its weights may be missing, and jobs fetch none.

    Without the framework nobody can tell; it says so and goes on.

    Args:
        task: Task of the study.
        engine: What computes it.
        train: How it is trained, by which weights.
        prepared: Folder of the prepared data set.
        command: What builds it.
        listener: Is told where nobody can tell.

    Raises:
        UserError: Naming that command.
    """
    from scalestudy.data.store.prepared import Prepared
    from scalestudy.study.engines import engine_traits
    from scalestudy.util.errors import UserError

    if _has_none(task, train) or _stamp(task, engine, _info(Prepared.open(prepared), train)).exists():
        return
    if engine_traits(engine).missing_software():
        _note_unbuilt(task, engine, listener)
        return
    raise UserError(
        "a task whose model was built here once, so that its weights are here: a job never downloads",
        f"{task}, not built yet or changed since",
        f"Run here: {command}",
    )


def _note_unbuilt(task: str, engine: str, listener: Listener) -> None:
    from scalestudy.study.engines import engine_traits

    label = engine_traits(engine).label
    listener.note(
        f"Note: no {label} here, so the model of {task} was not built. If it takes pretrained "
        f"weights, run `scalestudy data prepare` once more where {label} is."
    )


def _has_none(task: str, train: "ResolvedTrain") -> bool:
    from scalestudy.study.catalog import is_ours

    return is_ours(task) and train.weights in (None, "none") and not train.frozen_epochs


def _warn_of_scaling(task: str, train: "ResolvedTrain", listener: Listener) -> None:
    if train.weights not in (None, "none") and train.input_scaling == "unit":
        listener.note(
            f"Note: the weights of {task} were not trained on inputs from 0 to 1, as the published study gave"
            ' them; train.input_scaling = "pretrained" gives what they were trained on.'
        )


def _info(data: "Prepared", train: "ResolvedTrain") -> dict[str, object]:
    return {
        "kind": data.kind, "input_shape": data.input_shape, "classes": data.classes, "ignore": data.ignore,
        "columns": data.columns, "train": train.model_dump(mode="json"),
    }  # fmt: skip


def _stamp(task: str, engine: str, info: "Mapping[str, object]") -> Path:
    """A file that says: built, with this task file, for such data, and this folder of weights."""
    import os

    from scalestudy.data.sources.base import digest
    from scalestudy.data.sources.locate import cache_folder
    from scalestudy.study.catalog import task_file
    from scalestudy.study.engines import engine_traits

    try:
        text = task_file(task).read_bytes()
    except OSError:
        text = b""
    home = engine_traits(engine).weights_folder(os.environ)
    weights = {key: info["train"][key] for key in ("weights", "input_scaling")}  # type: ignore[index]
    name = digest("built and tried", task, text, sorted((dict(info) | {"train": weights}).items()), home)[:16]
    return cache_folder(None) / "weights" / name
