"""Starting the processes that use a model on this machine, and staying until they have ended."""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scalestudy.cluster.environment import own_gpus, process_environment
from scalestudy.features.predict.job import Job
from scalestudy.features.predict.worker import ENDS_WITH
from scalestudy.hardware import cores
from scalestudy.hardware.devices import visible_gpus
from scalestudy.launch.local.workers import Command, Workers
from scalestudy.study.engines import EngineTraits, engine_traits
from scalestudy.util import modules
from scalestudy.util.errors import RunError, ScalestudyError, UserError

POLL = 0.1
TAIL = 3
"""Lines of a log that a message shows."""

OnProgress = Callable[[int], None]
"""Is told how much is done: images, or samples."""


def device_for(asked: str, workers: int) -> str:
    """What is computed on, "cpu" or "gpu": GPUs where there are any, unless told otherwise.

    Raises:
        UserError: If GPUs are asked for that are not there.
    """
    if asked not in ("auto", "cpu", "gpu"):
        raise UserError("--device auto, cpu or gpu", repr(asked), "Choose one of these.")
    found = len(visible_gpus(os.environ)) if asked != "cpu" else 0
    if asked == "gpu" and not found:
        raise UserError(
            "a GPU", "none that this process may use", "Take --device cpu, or `scalestudy check` to see why."
        )
    if found and workers > found:
        raise UserError(
            f"at most as many workers as GPUs ({found})", f"{workers}", "Lower --workers, or --device cpu."
        )
    return "gpu" if found else "cpu"


@contextlib.contextmanager
def computed(job: Job, done: Callable[[Path], int], on_progress: OnProgress) -> Iterator[tuple[Path, Any]]:
    """Run a job to its end; within, the folder with what its processes left, and the first one's answer.

    Args:
        job: What to do.
        done: How much is done, by that folder.
        on_progress: Is told whenever that grows.

    Raises:
        UserError: As a process has said; or without a framework.
        RunError: If a process ended without saying why.
    """
    engine = engine_traits(job.record.engine)
    if engine.missing_software():
        raise UserError(
            f"{engine.label}, which computes what a model says",
            f"none in this Python ({sys.executable})",
            f"Run this where training runs: in a job, a container, or the environment with {engine.label}.",
        )
    with tempfile.TemporaryDirectory(prefix="scalestudy-") as made:
        folder = Path(made)
        (folder / "job.json").write_text(job.model_dump_json())
        with Workers(list(_commands(job, folder, engine))) as workers:
            failure = workers.wait(POLL, lambda: on_progress(done(folder)))
        if failure is not None:
            raise _error(folder, *failure)
        on_progress(done(folder))
        yield folder, json.loads((folder / "done-0.json").read_text())


def _commands(job: Job, folder: Path, engine: EngineTraits) -> Iterator[Command]:
    granted = sorted(cores.granted())
    gpus = visible_gpus(os.environ) if job.device == "gpu" else []
    for rank in range(job.size):
        own = granted[rank * len(granted) // job.size : (rank + 1) * len(granted) // job.size]
        own = own or [granted[rank % len(granted)]]
        yield Command(
            [sys.executable, "-P", "-m", modules.INFERENCE, str(folder / "job.json"), str(rank)],
            _variables(engine, own, own_gpus(os.environ, gpus, local_rank=rank) if gpus else []),
            own, folder / f"log-{rank}", Path.cwd(),
        )  # fmt: skip


def _variables(engine: EngineTraits, own: Sequence[int], gpus: Sequence[str]) -> Mapping[str, str]:
    values = process_environment(os.environ, engine, gpus=gpus, quiet=True).applied(os.environ)
    return values | {
        ENDS_WITH: str(os.getpid()), "OMP_NUM_THREADS": str(len(own)), "PYTHONUNBUFFERED": "1",
    }  # fmt: skip


def _error(folder: Path, rank: int, code: int) -> ScalestudyError:
    try:
        told = json.loads((folder / f"error-{rank}.json").read_text())
    except (OSError, ValueError):
        told = {}
    if "expected" in told:
        kind = UserError if told["code"] == UserError.exit_code else RunError
        return kind(told["expected"], told["received"], told["action"])
    log = (folder / f"log-{rank}").read_text(errors="replace").strip().splitlines()
    said = told.get("received") or " / ".join(log[-TAIL:]) or "nothing said"
    return RunError(
        "a process that computes what the model says to end well",
        f"exit code {code}: {said}",
        "If memory ran out, take fewer workers or smaller images.",
    )
