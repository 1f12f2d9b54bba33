"""The logs of a run, as far as they are, and as they grow."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.util.escaping import printable

if TYPE_CHECKING:
    from scalestudy.study.run_folder import RunFolder
    from scalestudy.study.store import StudyFolder

BLOCK = 1 << 16


class Tails:
    """Prints the last lines of a run's logs, then what is added."""

    def __init__(
        self, folder: "StudyFolder", run: "RunFolder", rank: int | None, *, job: bool, lines: int
    ) -> None:
        self.folder = folder
        self.run = run
        self.rank = rank
        self.job = job
        self.lines = lines
        self._read: dict[Path, int] = {}

    def show(self) -> None:
        """Print what is new: of a log not seen before its last lines."""
        from scalestudy.launch.failures import log_files

        for prefix, file in log_files(self.run, self.rank, job=self.job):
            for line in self._new(file):
                print(prefix + printable(line), flush=True)

    def follow(self) -> None:
        """Go on until the run has ended, or until Ctrl-C."""
        from scalestudy.app.logs import under_way

        while under_way(self.folder, self.run):
            time.sleep(0.5)
            self.show()
        self.show()

    def _new(self, file: Path) -> list[str]:
        """Whole lines that were added; a line under way is kept for the next time."""
        start = self._read.get(file)
        if not file.is_file():  # a pipe in its place would be waited for
            return []
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
