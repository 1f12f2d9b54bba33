"""A listener that records what a study reports."""

from contextlib import contextmanager

from scalestudy.app.follow import Listener


class RecordingListener(Listener):
    """Records notes, submitted jobs, states of points, and tasks with their progress."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.jobs: list[tuple[str, str]] = []
        self.states: list[tuple[str, str]] = []
        self.tasks: list[str] = []
        self.amounts: list[int] = []
        self.total: int | None = None

    def note(self, text: str) -> None:
        self.notes.append(text)

    def submitted(self, name: str, job: str) -> None:
        self.jobs.append((name, job))

    def points_changed(self, overview) -> None:
        self.states += [
            item for item in overview.states.items() if item not in self.states
        ]

    @contextmanager
    def progress(self, what: str, total: int | None = None, unit: str = ""):
        self.tasks.append(what)
        self.total = total
        yield lambda done, total=None: self.amounts.append(done)
