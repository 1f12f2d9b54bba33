"""Runs one point on this machine, without the other points of its study."""

from unittest.mock import patch

from scalestudy.launch import local_run as run
from scalestudy.launch.launcher import Moved, UnrecordedFailure


def run_point(folder, point, watch=lambda run, progress: None):
    """Return why the run failed, or None; `watch` is called several times a second, and may interrupt it."""
    with patch.object(run, "TELL_EVERY", 0.0):
        steps = run.run_steps(folder, point)
        for step in steps:
            if isinstance(step, UnrecordedFailure):
                return step.failure
            if isinstance(step, Moved):
                latest = folder.runs(point.name)[-1]
                try:
                    watch(latest, latest.progress())
                except KeyboardInterrupt as interrupt:
                    steps.throw(interrupt)
    return folder.runs(point.name)[-1].failure()
