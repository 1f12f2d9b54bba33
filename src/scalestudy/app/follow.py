"""Following a study whose runs are not this process's own."""

import time
from pathlib import Path

from scalestudy.app.listener import Listener
from scalestudy.launch.base import Overview
from scalestudy.launch.status import study_status
from scalestudy.study.store import StudyFolder

SHARE = 0.2
"""Part of the time that may go into reading the folder: a slow file system is read less often."""


def follow(path: Path, listener: Listener) -> Overview:
    """Tell how the points of a folder stand until none is queued or running.

    Returns:
        The points as they stand at the end.

    Raises:
        KeyboardInterrupt: On Ctrl-C; what runs goes on.
    """
    started = time.monotonic()
    overview = _look(path, None)
    with listener.following(overview):
        while overview.open:
            time.sleep(pause(time.monotonic() - started))
            started = time.monotonic()
            overview = _look(path, overview)
            listener.seen(overview)
    return overview


def pause(cost: float) -> float:
    """Seconds to wait after a look that took `cost` seconds."""
    return max(1.0, cost / SHARE)


def _look(path: Path, known: Overview | None) -> Overview:
    folder = StudyFolder.open(path)  # points may have been added since
    return study_status(folder, known=known)
