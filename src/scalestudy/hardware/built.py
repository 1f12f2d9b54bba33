"""What an environment was built from and where: `python -m scalestudy.hardware.built [--builds]` prints it.

`--builds` also starts the framework, in a process of its own, to ask how it and its libraries were built.
"""

import datetime
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from scalestudy.hardware.cores import cpu_model
from scalestudy.hardware.devices import read_gpus
from scalestudy.hardware.installed import (
    container_image,
    environment_id,
    environment_name,
    packages,
)
from scalestudy.hardware.nvml import driver_version
from scalestudy.hardware.shadowing import library_path
from scalestudy.study.engines import DEFAULT, engine_names, engine_traits
from scalestudy.util import modules
from scalestudy.util.errors import UserError

RECORD_FILE = "scalestudy-environment.json"
LIMIT = 300.0
"""Seconds to import a framework for the first time, from a slow file system."""


class Built(BaseModel):
    """`scalestudy-environment.json` in an environment's folder: what `check --environment` shows."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)

    schema_version: Literal[1] = 1
    id: str
    """Short digest of the versions: see `installed.environment_id`."""
    name: str
    """Container image, or folder of the virtual environment."""
    prefix: str
    recorded: str
    """Time of day, ISO 8601, UTC."""
    python: str
    packages: dict[str, str]
    builds: dict[str, Any] = {}
    """How the framework (CUDA, cuDNN) and Horovod (Gloo, MPI, NCCL) were built; empty if nobody asked."""
    build_ids: dict[str, str] = {}
    """Of each engine what tells builds of one version apart: the key of the wheel that Horovod came from."""
    modules: tuple[str, ...] = ()
    """Environment modules that are loaded."""
    host: str
    system: str
    cpu: str
    gpus: tuple[str, ...] = ()
    driver: str | None = None
    container: str | None = None


def describe(*, builds: bool) -> Built:
    """This Python's environment, on this machine.

    Args:
        builds: Whether to start the framework and ask how it was built.
    """
    return Built(
        id=environment_id(),
        name=environment_name(),
        prefix=sys.prefix,
        recorded=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        python=platform.python_version(),
        packages=packages(),
        builds=_builds() if builds else {},
        build_ids={each: engine_traits(each).build_id() for each in engine_names()},
        modules=tuple(filter(None, os.environ.get("LOADEDMODULES", "").split(":"))),
        host=socket.gethostname(),
        system=platform.platform(),
        cpu=cpu_model(),
        gpus=tuple(gpu.name for gpu in read_gpus()),
        driver=driver_version(),
        container=container_image(os.environ),
    )


def describe_other(prefix: Path, *, builds: bool) -> Built:
    """The environment in a folder, as its own Python describes it.

    Raises:
        UserError: There is none, or Scalestudy is not in it.
    """
    python = prefix / "bin" / "python"
    if not python.exists():
        raise UserError(
            "the folder of a virtual environment", f"{prefix}, which holds no bin/python",
            "Build one with environments/venv.sh.",
        )  # fmt: skip
    command = [str(python), "-P", "-m", modules.DESCRIBE_ENVIRONMENT, *(["--builds"] if builds else [])]
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=2 * LIMIT, check=False
    )
    try:
        return Built.model_validate_json(done.stdout)
    except ValidationError as error:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise UserError(
            f"an environment with this version of Scalestudy in {prefix}", last,
            f"Install it there: {python} -m pip install --no-deps FOLDER_OF_SCALESTUDY",
        ) from error  # fmt: skip


def read_record(prefix: Path) -> Built | None:
    """What was recorded of an environment, or None."""
    try:
        return Built.model_validate_json((prefix / RECORD_FILE).read_bytes())
    except (OSError, ValidationError):
        return None


def _builds() -> Mapping[str, Any]:
    """What the framework says of itself; under "error" why it says nothing."""
    engine = engine_traits(DEFAULT)
    if engine.missing_software():
        return {}
    with tempfile.TemporaryDirectory(prefix="scalestudy-env-") as folder:
        events = Path(folder) / "events"
        errand = json.dumps({"collective": None, "events": str(events)})
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", engine.trial_module, errand],
                env=library_path(os.environ).applied(os.environ),  # as workers load their libraries
                capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT, check=False,
            )  # fmt: skip
            answer: dict[str, Any] = json.loads(events.read_text())
        except subprocess.TimeoutExpired:
            return {"error": f"{engine.label} was not imported within {LIMIT:.0f} s"}
        except (OSError, json.JSONDecodeError):
            return {
                "error": (done.stderr.strip().splitlines() or [f"{engine.label} could not be imported"])[-1]
            }
    unwanted = ("step", "seconds")
    return {key: value for key, value in answer.items() if key not in unwanted and value is not None}


if __name__ == "__main__":
    print(describe(builds="--builds" in sys.argv[1:]).model_dump_json(indent=1))
