"""A job with a trained model, and the process of its own that does it."""

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from scalestudy.app.follow import Listener
from scalestudy.cluster.worker_environment import own_gpus, process_environment
from scalestudy.features.model.find_model import FoundModel
from scalestudy.features.model.image_inputs import ImageItem
from scalestudy.hardware import cores
from scalestudy.hardware.devices import visible_gpus
from scalestudy.launch.environments import python_of, variables_of
from scalestudy.plugins.engines import engine_traits
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.permission import without_sources
from scalestudy.store.records import Record
from scalestudy.util import modules
from scalestudy.util.child_process import ask_module
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
    form: str = ""
    """Format of an export."""


def device_for(asked: str) -> Literal["cpu", "gpu"]:
    """Return the device to compute on: by default GPUs if there are any, else the CPU.

    Raises:
        UserError: If GPUs are requested but missing.
    """
    if asked not in ("auto", "cpu", "gpu"):
        raise UserError(
            "--device auto, cpu or gpu",
            repr(asked),
            "Choose one of these.",
        )
    gpus = 0
    if asked != "cpu":
        gpus = len(visible_gpus(os.environ))
    if asked == "gpu" and not gpus:
        raise UserError(
            "a GPU",
            "no GPU that this process may use",
            "Use --device cpu, or run `scalestudy check` to see why.",
        )
    if gpus:
        return "gpu"
    return "cpu"


def compute(
    model: FoundModel,
    asked: Mapping[str, Any],
    title: str,
    total: int,
    listener: Listener,
) -> Any:
    """Do a job with a model in a process of its own, and return its answer; `asked` has its fields.

    The listener shows the title and the progress, of `total` images or samples.

    Raises:
        UserError: If the process reports a user error, or the framework is missing.
        RunError: If it fails in another way.
    """
    # A record may name data whose reading runs code: the process gets only those that the user has named.
    of = {"model": str(model.path.absolute()), "record": without_sources(model.record)}
    job = ModelJob.model_validate(of | dict(asked))
    engine = engine_traits(job.record.engine)
    environment = model.environment
    # What another environment holds, its own Python tells.
    if environment is None and engine.missing_software():
        raise UserError(
            f"{engine.label}, which computes the predictions",
            f"none in this Python ({sys.executable})",
            "Run this where training runs: in a job, in a container, or in the environment of"
            f" {engine.label}, with --environment DIR.",
        )
    # An empty list hides all GPUs; None would leave them visible.
    gpus: Sequence[str] | None = []
    if job.device == "gpu":
        visible = visible_gpus(os.environ)
        if visible:
            gpus = own_gpus(os.environ, visible, local_rank=0)
    changes = process_environment(os.environ, engine, gpus=gpus, quiet=True)
    variables = changes.applied(os.environ)
    variables |= {"OMP_NUM_THREADS": str(len(cores.granted()))}
    python = sys.executable
    if environment:
        python = python_of(environment)
        variables = variables_of(environment, variables)
    # In a file, since a job may name more images than a command line holds.
    with (
        listener.progress(title, total) as on_progress,
        tempfile.NamedTemporaryFile("w") as file,
    ):
        file.write(job.model_dump_json())
        file.flush()
        answer = ask_module(
            modules.INFERENCE,
            file.name,
            python=python,
            variables=variables,
            on_progress=on_progress,
        )
    if answer.code:
        raise RunError(EXPECTED, answer.end(), REMEDY)
    return answer.message
