"""A point's job in a queue: its mark, and the contents of its script."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from scalestudy.config.point import Point
from scalestudy.launch.queue.layout import JobLayout
from scalestudy.launch.queue.site import Site
from scalestudy.util.modules import own_source


class JobMark(NamedTuple):
    """The study and the submission that a job belongs to: in the queue, in its script, in job.json."""

    study: str
    """Digest of the real path of the study's folder, which stays the same if the folder is made again."""
    submission: str
    """16 random hexadecimal digits, new for every submission."""

    def __str__(self) -> str:
        return f"scalestudy:{self.study}:{self.submission}"


def output_of(script: Path) -> Path:
    """Return the file, beside a job's script, of the output that the job prints before it opens its log."""
    return script.with_suffix(".out")


@dataclass(frozen=True)
class JobScript:
    """The contents of a job script.

    Attributes:
        script: Absolute path of the script.
        run: Absolute path of the run's folder.
        python: Python of the workers if the site names neither an environment nor a container.
        source: Folder of Scalestudy's source, for the workers' PYTHONPATH; None if it is installed like any
            other package.
        mark: Mark of the submission; None for a job without a study.
    """

    name: str
    script: Path
    run: Path
    point: Point
    layout: JobLayout
    site: Site
    mark: JobMark | None = None
    python: str = sys.executable
    source: Path | None = field(default_factory=own_source)

    @property
    def study(self) -> Path:
        """Folder STUDY of a run in STUDY/points/NAME/run-K; any other run's own folder."""
        return self.run.parents[2] if self.run.parent.parent.name == "points" else self.run

    @property
    def printed(self) -> str:
        """File of the output before the script opens its log; /dev/null if its path has unusual characters.

        Slurm cannot write to a folder with a backslash in its name.
        """
        text = str(output_of(self.script))
        return text if text.isprintable() and "\\" not in text else "/dev/null"
