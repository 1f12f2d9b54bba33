"""Data sets of a study, prepared before its first run."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.conduct.listener import Listener
from scalestudy.errors import UserError

if TYPE_CHECKING:
    from scalestudy.data.kinds import Kind
    from scalestudy.study.place import Place
    from scalestudy.study.point import Point
    from scalestudy.study.settings import DataSettings


class NotPreparedError(UserError):
    """A data set is to be prepared ahead, and is not."""


def prepared(
    points: "Iterable[Point]", kind: "Kind | None", base: Path, place: "Place", listener: Listener
) -> "list[Point]":
    """The points with their data set prepared and split, and their task's weights here; each once.

    Raises:
        UserError: If a data set or a user's model cannot be made, or a set is too small for a point.
    """
    from scalestudy.conduct.weights import fetch_weights

    made: dict[str, tuple[str, str, int]] = {}
    ready = []
    for point in points:
        key = point.data.model_dump_json()
        if key not in made:
            made[key] = prepare_data(point.data, kind, base, listener)
            fetch_weights(point.task, made[key][0], listener)
        folder, split, training = made[key]
        _refuse_too_few(point, training, place)
        ready.append(point.with_files(folder, split))
    return ready


def prepared_ahead(
    points: "Iterable[Point]", kind: "Kind | None", base: Path, place: "Place", listener: Listener
) -> "list[Point]":
    """The points with their data set and split as prepared before; nothing is decoded, fetched or written.

    Raises:
        NotPreparedError: If one is not prepared.
        UserError: If one is too small for a point; or if the weights may be missing.
    """
    import shlex

    from scalestudy.conduct.weights import refuse_missing_weights

    command = f"scalestudy data prepare {shlex.quote(str(base / place.file))}"
    known: dict[str, tuple[str, str, int]] = {}
    ready = []
    for point in points:
        key = point.data.model_dump_json()
        if key not in known:
            known[key] = _find_data(point.data, kind, base, place, command)
            refuse_missing_weights(point.task, known[key][0], command, listener)
        folder, split, training = known[key]
        _refuse_too_few(point, training, place)
        ready.append(point.with_files(folder, split))
    return ready


def _find_data(
    data: "DataSettings", kind: "Kind | None", base: Path, place: "Place", command: str
) -> tuple[str, str, int]:
    from scalestudy.data.prepare import find_prepared
    from scalestudy.data.split import find_split

    assert data.source is not None
    done = find_prepared(
        data.source, task_kind=kind, image_size=data.image_size, cache=data.cache, seed=data.seed, base=base
    )
    split = find_split(done, data.validation, data.seed) if done else None
    if done is None or split is None:
        raise NotPreparedError(
            "a data set that is prepared ahead, since a job never decodes or downloads",
            f"{data.source}, not prepared yet{place.of('data.source', 'data', 'task')}",
            f"Run here: {command}",
        )
    return str(done.path.absolute()), str(Path(str(split.path)).absolute()), len(split.train)


def prepare_data(
    data: "DataSettings", kind: "Kind | None", base: Path, listener: Listener
) -> tuple[str, str, int]:
    """Prepare and split one data set.

    Returns:
        Folder of the arrays, file of the split, and number of training samples.
    """
    from scalestudy.data.prepare import prepare
    from scalestudy.data.split import stored_split

    assert data.source is not None
    with listener.preparing(data.source) as on_progress:
        done = prepare(
            data.source,
            task_kind=kind,
            image_size=data.image_size,
            cache=data.cache,
            seed=data.seed,
            base=base,
            on_progress=on_progress,
        )
    split = stored_split(done, data.validation, data.seed)
    return str(done.path.absolute()), str(Path(str(split.path)).absolute()), len(split.train)


def _refuse_too_few(point: "Point", training: int, place: "Place") -> None:
    where = place.of("sweep.workers", "data.source", "data", "task")
    if point.workers > training:
        raise UserError(
            f"at least {point.workers} training samples for {point.workers} workers",
            f"{training}{where}",
            "Take fewer workers, or more data.",
        )
    if point.global_batch > training:
        raise UserError(
            f"a global batch within the {training} training samples",
            f"{point.global_batch} for point {point.name}"
            f"{place.of('sweep.train.batch_size', 'train.batch_size', 'sweep.workers', 'data')}",
            "Lower batch_size, take fewer workers, or more data.",
        )


def study_data(file: Path) -> "tuple[str, list[DataSettings], Kind | None]":
    """A study file's task, the different data settings of its points, and the kind of data that they hold."""
    from scalestudy.conduct.task_data import with_task_data
    from scalestudy.study.expand import expand
    from scalestudy.study.load import load_study

    study, kind = with_task_data(load_study(file))
    # As if no machine could be too small: where it runs is not the question here.
    points = expand(study, gpus=1_000_000, cores=1_000_000)
    return study.task, list({point.data.model_dump_json(): point.data for point in points}.values()), kind
