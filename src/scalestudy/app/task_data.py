"""The source of data that a study's task brings, where the study names none."""

from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.app.listener import Listener

if TYPE_CHECKING:
    from scalestudy.data.sources.registry import Kind
    from scalestudy.study.file import Study


def with_task_data(study: "Study", listener: Listener | None = None) -> "tuple[Study, Kind | None]":
    """The study with its task file's source where it names none, and the kind of data that its task wants.

    Args:
        study: The study.
        listener: Is told while the task file is imported.

    Raises:
        UserError: If neither names a source.
    """
    from scalestudy.data.sources.registry import named_source
    from scalestudy.study.catalog import is_ours, task_defaults, task_file
    from scalestudy.study.keys import UndefinedVariable, expanded
    from scalestudy.util.errors import UserError

    if is_ours(study.task):
        return study, task_defaults(study.task).kind
    from scalestudy.launch.describe import describe_task

    with (listener or Listener()).importing(study.task):
        told = describe_task(task_file(study.task), study.launch.silent_after)
    kind: Kind | None = told.get("kind")
    if kind not in ("masks", "classes", "custom", None):
        raise UserError('kind = "masks" or "classes"', f"{kind!r} in {study.task}", "Correct the task file.")
    if told.get("reads") and study.data.read is None:
        study = study.with_data(read=str(task_file(study.task)))
    kind = "custom" if study.data.read is not None else kind
    if study.data.source or "data.source" in study.sweep.other:
        return study, kind
    told_data = told.get("data")
    source = told_data.get("source") if isinstance(told_data, dict) else told_data
    if source is None and study.data.read is not None:
        return study.with_data(source=study.data.read), kind  # which needs no other
    if not isinstance(source, str):
        raise UserError(
            "a source of data",
            f"none{study.place.of('data', 'task')}, and none in {study.task}",
            'Write source = "FOLDER" under [data], or data = "FOLDER" in the task file.',
        )
    if named_source(source) is None:
        try:
            source = str(Path(study.task).parent / expanded(source))
        except UndefinedVariable as undefined:
            raise UserError(
                f"the environment variable {undefined} to be set",
                f'data = "{source}" in {study.task}',
                f"Run `export {undefined}=...` first, or write the path out.",
            ) from None
    return study.with_data(source=source), kind
