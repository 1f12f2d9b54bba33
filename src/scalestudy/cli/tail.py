"""The logs of a run, as far as they are, and as they grow."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalestudy.study.run_folder import RunFolder
    from scalestudy.study.store import StudyFolder

BLOCK = 1 << 16


def chosen_run(folder: "StudyFolder", point: str | None) -> "RunFolder | None":
    """The newest run of a point; without one of the point that is running, else of whichever wrote last."""
    if point is not None:
        return next(reversed(folder.runs(point)), None)
    newest = [runs[-1] for each in folder.points() if (runs := folder.runs(each.name))]
    running = [run for run in newest if folder.state(run.path.parent.name) == "running"]
    return max(running or newest, key=_last_written, default=None)


def log_files(run: "RunFolder", rank: int | None, *, job: bool) -> list[tuple[str, Path]]:
    """The run's logs with what stands before their lines: "[0] ", or nothing for a job's."""
    folder = run.path / "logs"
    if job:
        return [("", file) for file in (folder / "job.log",) if file.exists()]
    ranks = [int(file.stem[5:]) for file in folder.glob("rank-*.log") if file.stem[5:].isdigit()]
    return [
        (f"[{each}] ", folder / f"rank-{each}.log") for each in sorted(ranks) if rank is None or each == rank
    ]


class Tails:
    """Prints the last lines of a run's logs, then what is added."""

    def __init__(self, run: "RunFolder", rank: int | None, *, job: bool, lines: int) -> None:
        self.run = run
        self.rank = rank
        self.job = job
        self.lines = lines
        self._read: dict[Path, int] = {}

    def show(self) -> None:
        """Print what is new: of a log not seen before its last lines."""
        for prefix, file in log_files(self.run, self.rank, job=self.job):
            for line in self._new(file):
                print(prefix + line, flush=True)

    def follow(self, folder: "StudyFolder") -> None:
        """Go on until the run has ended, or until Ctrl-C."""
        while self._alive(folder):
            time.sleep(0.5)
            self.show()
        self.show()

    def _alive(self, folder: "StudyFolder") -> bool:
        if self.run.result():
            return False
        if self.run.job() is None:
            return not self.run.failure() and self.run.alive()
        from scalestudy.launch.queue.jobs.overview import look

        name = self.run.path.parent.name
        return any(seen.point.name == name and seen.run == self.run for seen in look(folder).open)

    def _new(self, file: Path) -> list[str]:
        """Whole lines that were added; a line under way is kept for the next time."""
        start = self._read.get(file)
        try:
            with open(file, "rb") as stream:
                first = start is None
                if start is None:
                    start = max(stream.seek(0, 2) - BLOCK, 0)
                stream.seek(start)
                text = stream.read()
        except OSError:
            return []
        whole = text.rpartition(b"\n")[0] + b"\n" if b"\n" in text else b""
        self._read[file] = start + len(whole)
        lines = whole.decode(errors="replace").splitlines()
        return lines[-self.lines :] if first else lines


def _last_written(run: "RunFolder") -> float:
    files = [file.stat().st_mtime for file in (run.path / "logs").glob("*.log")]
    return max(files, default=0.0)
