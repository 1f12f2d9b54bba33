"""The software environment: its packages, its short id, and the record that `check --environment` shows.

`python -m scalestudy.hardware.installed [--builds]` prints the record; `--builds` also starts the framework,
in a process of its own, to ask how it and its libraries were built.
"""

import datetime
import hashlib
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict, ValidationError

from scalestudy.hardware.cores import cpu_model
from scalestudy.hardware.devices import read_gpus
from scalestudy.hardware.nvml import driver_version
from scalestudy.hardware.shadowing import library_path
from scalestudy.study.engines import engine_names, engine_traits, installed_engine
from scalestudy.util import modules
from scalestudy.util.errors import UserError

ID_DIGITS = 10
IMAGE_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "APPTAINER_NAME", "SINGULARITY_NAME")


def packages() -> dict[str, str]:
    """Versions by normalised name; of a name found twice, the one that is imported."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower()
        if name:
            found.setdefault(name, distribution.version)
    return dict(sorted(found.items()))


def environment_id() -> str:
    """Ten digits that two environments share if they compute with the same software.

    SHA-256 of the versions of Python and of all packages, and of the builds that their versions do not tell
    apart (see `EngineTraits.build_id`).
    """
    return identify(packages(), _build_ids())


def _build_ids() -> dict[str, str]:
    return {name: engine_traits(name).build_id() for name in engine_names()}


def identify(versions: Mapping[str, str], builds: Mapping[str, str]) -> str:
    """The same of given versions, and of builds by their engine ("" where they are of no account).

    Of Scalestudy itself the release counts, and not the commit (PEP 440's development and local parts): an
    editable install would have another name after each. Records hold the whole version beside the name.
    """
    if "scalestudy" in versions:
        versions = {**versions, "scalestudy": _release(versions["scalestudy"])}
    lines = [f"python=={platform.python_version()}", platform.machine()]
    lines += [f"{engine}-build=={build}" for engine, build in sorted(builds.items()) if build]
    lines += [f"{name}=={version}" for name, version in sorted(versions.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:ID_DIGITS]


def _release(version: str) -> str:
    try:
        return Version(version).base_version
    except InvalidVersion:
        return version


def environment_name(variables: Mapping[str, str] | None = None) -> str:
    """The container image that this process runs in, or else the folder of its virtual environment."""
    variables = os.environ if variables is None else variables
    return container_image(variables) or sys.prefix


def container_image(variables: Mapping[str, str]) -> str | None:
    """The image that this process runs in, by Apptainer's, Singularity's or Charliecloud's variables."""
    for name in IMAGE_VARIABLES:
        if variables.get(name):
            return variables[name]
    return "a Charliecloud image" if variables.get("CH_RUNNING") else None


RECORD_FILE = "scalestudy-environment.json"
LIMIT = 300.0
"""Seconds to import a framework for the first time, from a slow file system."""


class Built(BaseModel):
    """`scalestudy-environment.json` in an environment's folder: what `check --environment` shows."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)

    schema_version: Literal[1] = 1
    id: str
    """Short digest of the versions: see `environment_id`."""
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
    """This Python's environment, on this machine; with `builds` the framework is asked how it was built."""
    return Built(
        id=environment_id(), name=environment_name(), prefix=sys.prefix,
        recorded=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        python=platform.python_version(), packages=packages(), builds=_builds() if builds else {},
        build_ids=_build_ids(), modules=tuple(filter(None, os.environ.get("LOADEDMODULES", "").split(":"))),
        host=socket.gethostname(), system=platform.platform(), cpu=cpu_model(),
        gpus=tuple(gpu.name for gpu in read_gpus()), driver=driver_version(),
        container=container_image(os.environ),
    )  # fmt: skip


def describe_other(prefix: Path, *, builds: bool, variables: Mapping[str, str] | None = None) -> Built:
    """The environment in a folder, as its own Python describes it, with these variables or our own.

    Raises:
        UserError: There is none, or Scalestudy is not in it.
    """
    python = prefix / "bin" / "python"
    if not python.exists():
        raise UserError(
            "the folder of a virtual environment", f"{prefix}, which has no bin/python",
            "Build one with environments/venv.sh.",
        )  # fmt: skip
    command = [str(python), "-P", "-m", modules.DESCRIBE_ENVIRONMENT, *(["--builds"] if builds else [])]
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=2 * LIMIT, check=False,
        env=variables,
    )  # fmt: skip
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
    engine = engine_traits(installed_engine())
    if engine.missing_software() or not engine.trial_module:
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
