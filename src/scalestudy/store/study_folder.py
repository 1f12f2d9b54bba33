"""The folder of a study: `study.json`, `study.toml`, and `points/NAME/run-K` for every run."""

import hashlib
import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Literal

from scalestudy.config.differences import refuse_other_study
from scalestudy.config.file import Study
from scalestudy.config.point import Point
from scalestudy.config.run_order import RunOrder
from scalestudy.config.task_sources import FOLDER as SOURCES
from scalestudy.config.task_sources import changes, digests, source_files, sources_of
from scalestudy.store.record_file import read_record, write_record
from scalestudy.store.records import Record
from scalestudy.store.run_folder import NAME, OF_NEWER, RunFolder, write_point
from scalestudy.store.state import UNSUCCESSFUL, state_of_runs
from scalestudy.util.errors import LONGEST, UserError
from scalestudy.util.files import (
    contents,
    make_folder,
    make_inside,
    sync_folder,
    without_following,
    write_atomically,
)
from scalestudy.util.locks import Timeout, take
from scalestudy.util.targets import refuse_inside_study, refuse_new_at_root

__all__ = ["RunFolder", "StudyFolder", "default_folder"]

STUDY_SCHEMA: Literal[1] = 1
Change = Callable[[Study, list[Point]], tuple[Study, list[Point], str]]
"""Maps a study and its points to their new versions and the new text of the study file."""
PATTERNS = ("*/study.json", "studies/*/study.json", "*/studies/*/study.json")
"""Where studies lie in a folder of results, of a project, or of projects."""
_OTHER_FOLDER = "Name another folder with --out."


class StudyRecord(Record):
    """`study.json`."""

    schema_version: Literal[1] = STUDY_SCHEMA
    study: Study
    points: list[Point]
    order: RunOrder = RunOrder()
    study_text: str
    """SHA-256 of study.toml."""


def default_folder(study_file: str | Path, name: str) -> Path:
    """Results folder of a study: `studies/NAME` beside its file."""
    return Path(study_file).parent / "studies" / name


class StudyFolder:
    """A study's results. All information is read from files; there is no other state."""

    def __init__(self, path: Path, record: StudyRecord) -> None:
        self.path = path
        self._record = record

    @classmethod
    def create_or_open(
        cls,
        path: str | Path,
        study: Study,
        points: list[Point],
        study_text: str,
        order: RunOrder | None = None,
    ) -> "StudyFolder":
        """Create the folder of a study, or open it if it exists.

        The sweep's lists may have changed: new points are added, and points no longer in the sweep are kept
        only if they have a run that is finished, active or damaged. If `order` is None, the folder's order is
        used, or a new one.

        Raises:
            UserError: The folder holds something else, or belongs to another study.
        """
        path = Path(path)
        existing = cls.check(path, study, points)
        if order is None and existing:
            order = existing.order
        order = order or RunOrder.drawn_from(study_text)
        digest = hashlib.sha256(study_text.encode()).hexdigest()
        record = StudyRecord(
            study=study,
            points=points,
            order=order,
            study_text=digest,
        )
        try:
            if existing:
                return existing._extended(record, study_text)
            _create(path, record, study_text)
        except OSError as error:
            # Of two that create the folder at once, the second opens it.
            created_meanwhile = os.path.lexists(path / "study.json")
            if existing is None and created_meanwhile:
                return cls.create_or_open(path, study, points, study_text, order)
            raise _not_writable(
                f"{error.filename or path}: {error.strerror}"
            ) from error
        return cls(path, record)

    @classmethod
    def check(
        cls,
        path: str | Path,
        study: Study,
        points: list[Point],
    ) -> "StudyFolder | None":
        """This study's folder at `path`, or None if it can be created there. Writes nothing.

        Raises:
            UserError: The folder holds something else or another study, or cannot be created.
        """
        path = Path(path)
        if path.exists() and not path.is_dir():
            raise UserError(
                "a folder for the results",
                f"{path}, which is a file",
                _OTHER_FOLDER,
            )
        refuse_inside_study(path.absolute().parent)
        refuse_new_at_root(path)
        _refuse_unmakeable(path)
        # lexists: a broken link is refused by `open` rather than taken for a new folder.
        if os.path.lexists(path / "study.json"):
            folder = cls.open(path)
            refuse_other_study(path, (folder.study, folder.points()), (study, points))
            folder._refuse_other_sources(study, points)
            return folder
        if path.is_dir() and any(path.iterdir()):
            raise UserError(
                "an empty folder, or the results folder of a study",
                f"{path}, which holds other files and no study.json",
                _OTHER_FOLDER,
            )
        return None

    @classmethod
    def open(cls, path: str | Path) -> "StudyFolder":
        """Open the folder of a study; raises UserError if there is none, listing studies nearby."""
        path = Path(path)
        stored = read_record(path / "study.json", StudyRecord)
        if stored.record is not None:
            return cls(path, stored.record)
        if stored.word == "missing" or not path.is_dir():
            if path.is_dir():
                what = "has no study.json"
            elif path.exists():
                what = "is a file"
            elif path.is_symlink():
                what = "is a broken link"
            else:
                what = "does not exist"
            raise UserError(
                "the results folder of a study",
                f"{path}, which {what}",
                _nearby(path),
            )
        if stored.newer:
            expected = f"a study of this version of Scalestudy (schema {STUDY_SCHEMA})"
            raise UserError(expected, f"{stored.why}, in {path}", OF_NEWER)
        raise UserError(
            f"an intact study.json of this version (schema {STUDY_SCHEMA})",
            f"{path / 'study.json'}, which is corrupt: {stored.why}",
            f"`scalestudy status --verify {shlex.quote(str(path))}` lists all damage. Restore the file "
            "from a backup.",
        )

    def _refuse_other_sources(self, study: Study, points: list[Point]) -> None:
        """Refuse to add runs of a task whose code has changed since runs that count."""
        now = sources_of(points)
        if sources_of(self.points()) == now:
            return
        # While every run has failed, the code can be corrected.
        kept = self._kept(self.points())
        sentences = list(changes(sources_of(kept), now))
        if not kept or not sentences:
            return
        action = "Name another folder with --out, or undo these changes"
        copies = self.path / SOURCES
        if copies.is_dir():
            action += f": {copies} holds the files as they were"
        raise UserError(
            f"the code that the runs in {self.path} were made with",
            f"other code: {'; '.join(sentences)}",
            f"{action}.",
        )

    def _kept(self, points: Iterable[Point]) -> list[Point]:
        """Those with a run that is finished, active or damaged."""
        gone = (*UNSUCCESSFUL, "missing")
        kept = []
        for point in points:
            if state_of_runs(self.runs(point.name)) not in gone:
                kept.append(point)
        return kept

    def _extended(self, record: StudyRecord, study_text: str) -> "StudyFolder":
        names = {point.name for point in record.points}
        # Queued runs must stay cancellable, and `verify` must find damaged ones.
        dropped = [point for point in self.points() if point.name not in names]
        older = self._kept(dropped)
        record = record.model_copy(update={"points": [*record.points, *older]})
        if record != self._record:
            with self.lock():
                _write(self.path, record, study_text)
        return StudyFolder(self.path, record)

    def updated(self, change: Change) -> "StudyFolder":
        """Change the study, its points and the text of its study file, and return the new folder.

        Processes make changes one at a time, based on the current state; others wait.
        """
        with take(self.path / "lock", wait=True) or nullcontext():
            # Another process may have changed it since this one has read it.
            now = StudyFolder.open(self.path)
            study, points, text = change(now.study, now.points())
            digest = hashlib.sha256(text.encode()).hexdigest()
            record = StudyRecord(
                study=study,
                points=points,
                order=now.order,
                study_text=digest,
            )
            if record != now._record:
                _write(self.path, record, text)
        return StudyFolder(self.path, record)

    @property
    def study(self) -> Study:
        """The study, resolved as of its last run."""
        return self._record.study

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.study.name

    @property
    def order(self) -> RunOrder:
        """The order in which its runs are taken."""
        return self._record.order

    def points(self) -> list[Point]:
        """All points, row by row."""
        return list(self._record.points)

    def runs(self, point_name: str) -> list[RunFolder]:
        """Runs of a point, oldest first."""
        parent = self.path / "points" / point_name
        try:
            names = os.listdir(parent)
        # A point without runs has no folder.
        except OSError:
            return []
        runs = [RunFolder(parent / name) for name in names if NAME.fullmatch(name)]
        return sorted(runs, key=lambda run: run.number)

    def new_run(self, point: Point) -> RunFolder:
        """Create the next run of a point, owned by this process.

        The folder appears complete, with a number that no other launcher can take.

        Raises:
            OSError: It cannot be created, and nothing is left of it; or the study's folder is gone.
        """
        # Without its parents: a removed study stays removed.
        make_inside(self.path / "points")
        parent = self.path / "points" / point.name
        make_inside(parent)
        with _temporary(parent, ".run-") as temporary:
            write_point(temporary / "point.json", point)
            RunFolder(temporary).write_launcher_process()
            number = 0
            runs = self.runs(point.name)
            if runs:
                number = runs[-1].number
            while True:
                number += 1
                try:
                    # Fails if run-K exists, since a run folder is never empty.
                    run = RunFolder(temporary.rename(parent / f"run-{number}"))
                    sync_folder(parent)
                    return run
                except OSError:
                    # Another launcher has taken this number; any other error is one.
                    if not (parent / f"run-{number}").exists():
                        raise

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder against a second `run` of the study.

        Raises:
            UserError: Another process holds the lock (the error gives its pid), or it cannot be locked.
        """
        file = self.path / "lock"
        # Of the kernel, so that it ends with this process, however that ends.
        try:
            held = take(file)
        except Timeout:
            holder = ""
            with suppress(OSError):
                holder = contents(file).decode(errors="replace").strip()
            raise UserError(
                f"no other run of {self.path}",
                f"one by process {holder or 'unknown'}",
                f"Wait for it or stop it; `scalestudy status {self.path}` shows its progress.",
            ) from None
        except OSError as error:
            raise _not_writable(
                f"{error.filename or file}: {error.strerror}"
            ) from error
        # Some network file systems have no locks; there, only the files themselves protect a study.
        with held or nullcontext():
            # The pid is only for messages.
            with suppress(OSError), open(file, "w", opener=without_following) as opened:
                opened.write(str(os.getpid()))
            yield


@contextmanager
def _temporary(parent: Path, prefix: str) -> Iterator[Path]:
    """A new temporary folder, which the caller renames; removed on an error."""
    folder = make_folder(parent, prefix)
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _create(path: Path, record: StudyRecord, study_text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Renamed when complete, so that no reader meets half a study.
    with _temporary(path.parent, f".{path.name}.") as temporary:
        _write(temporary, record, study_text)
        temporary.rename(path)
        sync_folder(path.parent)


def _write(path: Path, record: StudyRecord, study_text: str) -> None:
    # study.json last: its presence makes the folder a study's.
    write_atomically(path / "study.toml", study_text)
    _copy_sources(path / SOURCES, record)
    write_record(path / "study.json", record)


def _copy_sources(folder: Path, record: StudyRecord) -> None:
    """Copy the sources of a study's points into a folder, unless copies of the same code are there."""
    wanted = sources_of(record.points)
    files: Mapping[str, Path] = {}
    if wanted:
        files = source_files(record.study.task, record.study.data.read)
    copies = {}
    for name in files:
        if (folder / name).is_file():
            copies[name] = folder / name
    if digests(copies) == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    make_inside(folder)
    for name in wanted.keys() & files.keys():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(files[name], folder / name)


def _refuse_unmakeable(path: Path) -> None:
    """Refuse a folder that cannot be created, before anything is prepared for it."""
    try:
        folder = path
        while not os.path.lexists(folder):
            folder = folder.absolute().parent
        # To create an entry in a folder takes both.
        writable = os.access(folder, os.W_OK | os.X_OK)
        if not folder.is_dir():
            wrong = f"{folder} is no folder"
        elif writable or (path / "study.json").exists():
            return
        else:
            wrong = f"{folder} cannot be written to"
    # ValueError: a NUL byte in the name.
    except (OSError, ValueError) as error:
        wrong = getattr(error, "strerror", None) or str(error)
    name = str(path)
    if len(name) > LONGEST:
        name = f"{name[:LONGEST]}…"
    raise _not_writable(f"{name}: {wrong}")


def _not_writable(what: str) -> UserError:
    action = "Free some space, ask its owner for write permission, or name another folder with --out."
    return UserError("a writable folder for the results", what, action)


def _nearby(path: Path) -> str:
    folders = set()
    for folder in (path, path / "studies", path.parent, path.parent / "studies"):
        for file in folder.glob("*/study.json"):
            folders.add(str(file.parent))
    if not folders:
        return "Name the folder that `scalestudy run` made (studies/NAME beside the study file)."
    return f"Nearby: {', '.join(sorted(folders)[:5])}."


def studies_in(folder: Path) -> list[Path]:
    """Folders of the studies below a folder; none if it is a study itself, or no folder."""
    if not folder.is_dir() or (folder / "study.json").exists():
        return []
    studies = set()
    for pattern in PATTERNS:
        for file in folder.glob(pattern):
            studies.add(file.parent)
    return sorted(studies)
