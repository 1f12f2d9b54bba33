"""Jobs that use a model on this machine, each in a process of its own."""

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from scalestudy.app.listener import Listener
from scalestudy.cluster.environment import own_gpus, process_environment
from scalestudy.config.metrics import Better
from scalestudy.data.child import ask
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.features.predict.inputs import ImageItem
from scalestudy.hardware import cores
from scalestudy.hardware.devices import visible_gpus
from scalestudy.launch.environments import python_of, starts, variables_of
from scalestudy.plugins.engines import engine_traits
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.records import Record
from scalestudy.store.run_folder import RunFolder
from scalestudy.util import modules
from scalestudy.util.errors import RunError, UserError

EXPECTED = "the process that computes the predictions to succeed"
REMEDY = "If memory ran out, use smaller images."


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


def computed(model: FoundModel, asked: Mapping[str, Any], title: str, total: int, listener: Listener) -> Any:
    """Do a job with a model in a process of its own, and return its answer; `asked` has its fields.

    The listener shows the title and the progress, of `total` images or samples.

    Raises:
        UserError: If the process reports a user error, or the framework is missing.
        RunError: If it fails in another way.
    """
    of = {"model": str(model.path.absolute()), "record": model.record}
    job = ModelJob.model_validate(of | dict(asked))
    engine, environment = engine_traits(job.record.engine), environment_of(job.model)
    if environment is None and engine.missing_software():
        raise UserError(
            f"{engine.label}, which computes the predictions",
            f"none in this Python ({sys.executable})",
            "Run this where training runs: in a job, in a container, or in the environment of"
            f" {engine.label}.",
        )
    visible = visible_gpus(os.environ) if job.device == "gpu" else []
    gpus = own_gpus(os.environ, visible, local_rank=0) if visible else []
    variables = process_environment(os.environ, engine, gpus=gpus, quiet=True).applied(os.environ)
    variables |= {"OMP_NUM_THREADS": str(len(cores.granted()))}
    python = python_of(environment) if environment else sys.executable
    with listener.progress(title, total) as on_progress, tempfile.NamedTemporaryFile("w") as file:
        file.write(job.model_dump_json())
        file.flush()
        answer = ask(
            modules.INFERENCE,
            file.name,
            python=python,
            variables=variables_of(environment, variables) if environment else variables,
            on_progress=on_progress,
        )
    if answer.code:
        raise RunError(EXPECTED, answer.end(), REMEDY)
    return answer.message


def environment_of(model: str) -> str | None:
    """Return the virtual environment of the run that wrote this model; None to use the current one."""
    run = RunFolder(Path(model).parent)
    place = run.point().environment if (run.path / "point.json").exists() else None
    return place if place is not None and starts(place) else None
