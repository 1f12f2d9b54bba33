"""The data of a study: find the source that its task names, and prepare it before the first run."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from os.path import realpath
from pathlib import Path

from scalestudy.app.follow import Listener
from scalestudy.app.task_checks import (
    fetch_weights,
    refuse_missing_weights,
    refuse_unusable,
)
from scalestudy.config.catalog import is_ours
from scalestudy.config.expand import expand
from scalestudy.config.file import Study
from scalestudy.config.keys import UndefinedVariable, expand_variables
from scalestudy.config.parse import load_study
from scalestudy.config.point import Point
from scalestudy.config.settings import DataSettings, LaunchSettings
from scalestudy.data.preparation import find_prepared, find_set
from scalestudy.data.samples import Kind
from scalestudy.data.sources import named_source
from scalestudy.data.sources.paths import cache_folder, folder_of
from scalestudy.data.split import Split, counts, ensure_split, find_split, untrained
from scalestudy.data.store.prepared import Prepared, weights_of
from scalestudy.util.errors import UserError
from scalestudy.util.printable import printable
from scalestudy.util.text import join_first

PreparedFiles = tuple[str, str, int]
"""Folder of the arrays, file of the split, and number of training samples."""


class NotPreparedError(UserError):
    """A data set must be prepared in advance, but is not."""


def with_task_data(study: Study) -> tuple[Study, Kind | None]:
    """Return the study, with its task file's source if it names none, and the task's kind of data.

    Raises:
        UserError: Neither names a source.
    """
    if is_ours(study.task):
        return study, study.defaults.kind
    defaults = study.defaults
    if defaults.reads and study.data.read is None:
        study = study.with_data(read=str(defaults.file))
    kind = defaults.kind
    if study.data.read is not None:
        kind = "custom"
    if study.data.source or "data.source" in study.sweep.other:
        return study, kind
    source = defaults.source
    if source is None and study.data.read is not None:
        # A reader needs no other source.
        return study.with_data(source=study.data.read), kind
    if source is None:
        raise UserError(
            "a source of data",
            f"none{study.place.of('data', 'task')}, and none in {study.task}",
            'Write source = "FOLDER" under [data], or data = "FOLDER" in the task file.',
        )
    try:
        # A path in a task file is relative to that file, not to the study.
        if named_source(source) is None:
            source = str(Path(study.task).parent / expand_variables(source))
    except UndefinedVariable as undefined:
        expected = f"the environment variable {undefined} to be set"
        action = f"Run `export {undefined}=...` first, or write the path out."
        raise UserError(
            expected,
            f'data = "{source}" in {study.task}',
            action,
        ) from None
    return study.with_data(source=source), kind


def prepare_points(
    points: Iterable[Point],
    kind: Kind | None,
    base: Path,
    study: Study,
    listener: Listener,
) -> list[Point]:
    """Prepare and split the data sets of points and fetch their tasks' weights, each once; return the points.

    Raises:
        UserError: A data set or a user's model cannot be made, or a set is too small for a point.
    """

    def take(point: Point) -> PreparedFiles:
        return prepare_data(
            point.data,
            kind,
            base,
            listener,
            point.launch.progress_timeout,
        )

    ready = _with_data(points, take, study, base)
    for point in _by_pretrained(ready):
        fetch_weights(point, point.needed_files().prepared, listener)
    return ready


def prepare_ahead(
    points: Iterable[Point],
    kind: Kind | None,
    base: Path,
    study: Study,
    listener: Listener,
) -> list[Point]:
    """Return the points with data sets and splits prepared earlier, without decoding, fetching or writing.

    Raises:
        NotPreparedError: A data set is not prepared.
        UserError: A data set is too small for a point, or the weights may be missing.
    """
    # Compute nodes often reach no network, and every job would decode the set anew.
    command = f"scalestudy data prepare {shlex.quote(str(base / study.place.file))}"

    def find(point: Point) -> PreparedFiles:
        data = point.data
        assert data.source is not None
        dataset = find_prepared(data, task_kind=kind, base=base)
        split = None
        if dataset:
            split = find_split(dataset, data.validation, data.seed)
        if dataset is None or split is None:
            raise NotPreparedError(
                "a prepared data set, since jobs neither decode nor download",
                f"{data.source}, not prepared yet{study.place.of('data.source', 'data', 'task')}",
                f"Run here: {command}",
            )
        return _noted(data, dataset, split, listener)

    ready = _with_data(points, find, study, base)
    for point in _by_pretrained(ready):
        refuse_missing_weights(point, point.needed_files().prepared, command, listener)
    return ready


def prepare_data(
    data: DataSettings,
    kind: Kind | None,
    base: Path,
    listener: Listener,
    within: float = LaunchSettings().progress_timeout,
) -> PreparedFiles:
    """Prepare and split one data set, and report the files that were left out.

    A user's `read` must give samples `within` seconds of each other.
    """
    planned = find_set(data, task_kind=kind, base=base)
    with listener.progress(f"Preparing {data.source}") as on_progress:
        done = planned.prepare(on_progress, within)
    return _noted(data, done, ensure_split(done, data.validation, data.seed), listener)


def look_at_data(
    points: Sequence[Point],
    kind: Kind | None,
    base: Path,
    study: Study,
    listener: Listener,
) -> None:
    """Report what the sources leave out; decodes and writes nothing.

    Raises:
        UserError: A source is missing, or does not suit the task.
    """
    for data in _data_sets(points):
        planned = find_set(data, task_kind=kind, base=base)
        for note in planned.left_out:
            listener.note(f"{data.source}: {note}")
        # Whether a set that is not prepared suits the points is known only once it is read.
        done = planned.prepared()
        if done is None:
            continue
        split = find_split(done, data.validation, data.seed)
        for point in points:
            if point.data != data:
                continue
            if split is not None:
                _refuse_too_few(point, len(split.train), study)
            refuse_unusable(point, study, base, classes=done.classes)


def refuse_results_inside(points: Iterable[Point], base: Path, target: Path) -> None:
    """Refuse a results folder inside a source or the cache: it would be read as data, or lost with the cache.

    Raises:
        UserError: It is in a source's folder, or in a prepared data set.
    """
    for data in _data_sets(points):
        assert data.source is not None
        # By real paths: a link may lead from anywhere into the data.
        wanted = Path(realpath(target))
        cache = Path(realpath(cache_folder(data.cache, base)))
        source = folder_of(data.source, base)
        sets = [path for path in (wanted, *wanted.parents) if path.parent == cache]
        # Only its sets: a folder that data.cache names may hold much else.
        if source is not None and wanted.is_relative_to(source):
            inside = f"the data set {source}"
        elif wanted == cache or any((path / "meta.json").exists() for path in sets):
            inside = f"the prepared data sets of {cache}"
        else:
            continue
        expected = "a results folder outside the data"
        raise UserError(
            expected,
            f"{target}, in {inside}",
            "Name another one: --out FOLDER.",
        )


def data_summary(folder: str, split: str) -> Iterator[str]:
    """Lines on the layout found in a prepared set, and on the samples in each part of its split."""
    prepared = Prepared.open(folder)
    if prepared.understood:
        yield printable(f"understood as {prepared.understood}")
    yield from map(printable, counts(prepared, Split.load(split)))


def study_data(
    file: Path, listener: Listener
) -> tuple[list[DataSettings], Kind | None, list[Point]]:
    """Find what a study file needs in advance.

    Returns:
        The different data settings of its points; the kind of their data; one point for each model that
        differs in engine or weights.
    """
    study, kind = with_task_data(load_study(file))
    # With unlimited resources, since the machine that runs the study may be another one.
    points = expand(study, gpus=1_000_000, cores=1_000_000)
    built: dict[tuple[object, ...], Point] = {}
    for point in points:
        train = point.train
        built[point.engine, train.weights, train.input_scaling] = point
    return _data_sets(points), kind, list(built.values())


def _data_sets(points: Iterable[Point]) -> list[DataSettings]:
    distinct: dict[str, DataSettings] = {}
    for point in points:
        # As text: settings with a table of colours cannot be a key themselves.
        distinct[point.data.model_dump_json()] = point.data
    return list(distinct.values())


def _by_pretrained(points: Iterable[Point]) -> Iterable[Point]:
    """One point for each model that must be built in advance."""
    distinct: dict[tuple[object, ...], Point] = {}
    for point in points:
        train, prepared = point.train, point.needed_files().prepared
        model = point.task, point.engine, train.weights, train.input_scaling
        # A model's input and classes are those of its data.
        distinct[*model, prepared] = point
    return distinct.values()


def _with_data(
    points: Iterable[Point],
    take: Callable[[Point], PreparedFiles],
    study: Study,
    base: Path,
) -> list[Point]:
    """Return the points with their files; `take` is called once for each data set."""
    taken: dict[str, PreparedFiles] = {}
    weights: dict[tuple[object, ...], tuple[float, ...] | None] = {}
    ready = []
    for point in points:
        # As text: settings with a table of colours cannot be a key themselves.
        key = point.data.model_dump_json()
        if key not in taken:
            taken[key] = take(point)
        folder, split, training = taken[key]
        _refuse_too_few(point, training, study)
        train, data = point.train, Prepared.open(folder)
        refuse_unusable(point, study, base, classes=data.classes)
        # "balanced" weights follow from the classes in the split, which takes reading all of them.
        asked = (folder, split, train.class_weights)
        if train.class_weights is not None and asked not in weights:
            rows = Split.load(split).train
            weights[asked] = weights_of(
                train.class_weights,
                Prepared.open(folder),
                rows,
            )
        ready.append(point.with_files(folder, split, weights.get(asked)))
    return ready


def _refuse_too_few(point: Point, training: int, study: Study) -> None:
    if point.workers > training:
        raise UserError(
            f"at least {point.workers} training samples for {point.workers} workers",
            f"{training}{study.place.of('sweep.workers', 'data.source', 'data', 'task')}",
            "Use fewer workers, or more data.",
        )
    if point.global_batch > training:
        names = ("train.batch_size", "sweep.workers", "data")
        raise UserError(
            f"a global batch within the {training} training samples",
            f"{point.global_batch} for point {point.name}{study.place.of(*names)}",
            "Lower batch_size, or use fewer workers or more data.",
        )


def _noted(
    data: DataSettings,
    done: Prepared,
    split: Split,
    listener: Listener,
) -> PreparedFiles:
    """Report what was left out of a prepared set, and return its files."""
    for note in (*done.left_out, *done.remarks):
        listener.note(f"{data.source}: {note}")
    names = untrained(done, split)
    if names:
        of = f"{len(names)} of {done.classes} classes"
        listener.note(
            f"{data.source}: no training sample of {of} ({join_first(names)}): make the validation set smaller"
        )
    # Absolute, since workers and jobs may start in another folder.
    arrays = str(done.path.absolute())
    rows = str(Path(str(split.path)).absolute())
    return arrays, rows, len(split.train)
