"""Jobs that use a model on this machine, each in a process of its own."""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from scalestudy.app.listener import Listener
from scalestudy.cluster.environment import own_gpus, process_environment
from scalestudy.config.metrics import Better
from scalestudy.features.predict.inputs import ImageItem
from scalestudy.hardware import cores
from scalestudy.hardware.devices import visible_gpus
from scalestudy.launch.environments import starts
from scalestudy.launch.local.workers import Command, WorkerProcesses, started_in
from scalestudy.plugins.engines import engine_traits
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.records import Record
from scalestudy.store.run_folder import RunFolder
from scalestudy.util import modules
from scalestudy.util.errors import RunError, ScalestudyError, UserError

ENDS_WITH = "SCALESTUDY_LAUNCHER"
"""Environment variable with a process ID; a worker ends when this process ends."""
LINES = "lines.jsonl"
"""File with a line for each predicted image."""
POLL = 0.1
TAIL = 3
"""Number of log lines in a message."""


class ModelJob(Record):
    """A job, which its process reads from a file."""

    action: Literal["predict", "evaluate", "gallery", "export"]
    model: str
    """Model file of a run."""
    record: ModelRecord
    device: Literal["cpu", "gpu"] = "cpu"
    out: str = ""
    """Output folder or file."""
    items: list[ImageItem] = Field(default_factory=list)
    """Images to predict."""
    overlay: bool = False
    prepared: str = ""
    """Folder of a prepared data set."""
    rows: list[int] = Field(default_factory=list)
    """Rows of this data set."""
    classes: list[int] = Field(default_factory=list)
    """The model's class for each class of this data set."""
    samples: int = 3
    """Samples of each kind in a gallery."""
    better: Better | None = None
    """Whether higher or lower quality is better."""
    form: str = ""
    """Format of an export."""


def device_for(asked: str) -> Literal["cpu", "gpu"]:
    """Return the device to compute on: by default GPUs if there are any, else the CPU.

    Raises:
        UserError: If GPUs are requested but missing.
    """
    if asked not in ("auto", "cpu", "gpu"):
        raise UserError("--device auto, cpu or gpu", repr(asked), "Choose one of these.")
    gpus = len(visible_gpus(os.environ)) if asked != "cpu" else 0
    if asked == "gpu" and not gpus:
        raise UserError(
            "a GPU",
            "no GPU that this process may use",
            "Use --device cpu, or run `scalestudy check` to see why.",
        )
    return "gpu" if gpus else "cpu"


@contextlib.contextmanager
def computed(
    job: ModelJob, title: str, total: int, listener: Listener, done: Callable[[Path], int] = lambda folder: 0
) -> Iterator[tuple[Path, Any]]:
    """Run a job until it ends; yield the folder of its results, and its answer.

    The listener shows the title and the progress: `done(folder)` of `total` images or samples.

    Raises:
        UserError: If the process reports a user error, or the framework is missing.
        RunError: If it fails in another way.
    """
    engine = engine_traits(job.record.engine)
    if environment_of(job.model) is None and engine.missing_software():
        raise UserError(
            f"{engine.label}, which computes the predictions",
            f"none in this Python ({sys.executable})",
            "Run this where training runs: in a job, in a container, or in the environment of"
            f" {engine.label}.",
        )
    with (
        listener.progress(title, total) as on_progress,
        tempfile.TemporaryDirectory(prefix="scalestudy-") as name,
    ):
        folder = Path(name)
        (folder / "job.json").write_text(job.model_dump_json())
        with WorkerProcesses([_command(job, folder)]) as workers:
            failure = workers.wait(POLL, lambda: on_progress(done(folder)))
        if failure is not None:
            raise _error(folder, failure[1])
        on_progress(done(folder))
        yield folder, json.loads((folder / "done.json").read_text())


def environment_of(model: str) -> str | None:
    """Return the virtual environment of the run that wrote this model; None to use the current one."""
    run = RunFolder(Path(model).parent)
    place = run.point().environment if (run.path / "point.json").exists() else None
    return place if place is not None and starts(place) else None


def _command(job: ModelJob, folder: Path) -> Command:
    cpus = sorted(cores.granted())
    visible = visible_gpus(os.environ) if job.device == "gpu" else []
    gpus = own_gpus(os.environ, visible, local_rank=0) if visible else []
    changes = process_environment(os.environ, engine_traits(job.record.engine), gpus=gpus, quiet=True)
    variables = changes.applied(os.environ) | {
        ENDS_WITH: str(os.getpid()),
        "OMP_NUM_THREADS": str(len(cpus)),
        "PYTHONUNBUFFERED": "1",
    }
    words = [sys.executable, "-P", "-m", modules.INFERENCE, str(folder / "job.json")]
    command = Command(words, variables, cpus, folder / "log", Path.cwd())
    return started_in(environment_of(job.model), command)


def _error(folder: Path, code: int) -> ScalestudyError:
    try:
        answer = json.loads((folder / "error.json").read_text())
    except (OSError, ValueError):
        answer = {}
    if "expected" in answer:
        kind = UserError if answer["code"] == UserError.exit_code else RunError
        return kind(answer["expected"], answer["received"], answer["action"])
    log = (folder / "log").read_text(errors="replace").strip().splitlines()
    words = answer.get("received") or " / ".join(log[-TAIL:]) or "nothing said"
    return RunError(
        "the process that computes the predictions to succeed",
        f"exit code {code}: {words}",
        "If memory ran out, use smaller images.",
    )
