"""The software environment: its packages and its short id.

`python -m scalestudy.hardware.installed` prints its packages; nothing is imported for it.
"""

import functools
import hashlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from scalestudy.plugins.engines import engine_names, engine_traits
from scalestudy.util import modules
from scalestudy.util.errors import UserError

LIBRARY_PATH = "LD_LIBRARY_PATH"
DRIVER_LIBRARY = "libcuda.so.1"
"""The driver's library, which no package contains; it may be in any folder of a cluster or container."""
ID_DIGITS = 10
IMAGE_VARIABLES = (
    "APPTAINER_CONTAINER",
    "SINGULARITY_CONTAINER",
    "APPTAINER_NAME",
    "SINGULARITY_NAME",
)
LIMIT = 600.0
"""Seconds that the start of Python on a slow file system may take."""


class LibraryPath(NamedTuple):
    """LD_LIBRARY_PATH for a process of the framework ("" to unset it), without the dropped folders."""

    value: str
    dropped: list[str]

    def applied(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return all variables of a process, from those of its parent."""
        kept = {
            name: value for name, value in variables.items() if name != LIBRARY_PATH
        }
        return kept | ({LIBRARY_PATH: self.value} if self.value else {})


@functools.cache
def package_libraries() -> dict[str, str]:
    """Return the folders of the libraries in NVIDIA's packages of this Python, by file name."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations or () if spec else ()
    files = (
        file for folder in folders for file in sorted(Path(folder).glob("*/lib/*.so*"))
    )
    return {file.name: str(file.parent) for file in files}


def library_path(
    variables: Mapping[str, str], own: Mapping[str, str] | None = None
) -> LibraryPath:
    """Return LD_LIBRARY_PATH without the folders that shadow a library of the packages.

    A folder that holds the driver's library stays. `own` are the folders of libraries in packages, by file
    name; by default, those installed.
    """
    own = package_libraries() if own is None else own
    parts = [part for part in variables.get(LIBRARY_PATH, "").split(os.pathsep) if part]
    dropped = [
        part
        for index, part in enumerate(parts)
        if any(own[name] not in parts[: index + 1] for name in _held(part, own))
        and not Path(part, DRIVER_LIBRARY).exists()
    ]
    if not dropped:
        return LibraryPath(variables.get(LIBRARY_PATH, ""), [])
    return LibraryPath(
        os.pathsep.join(part for part in parts if part not in dropped), dropped
    )


def _held(folder: str, names: Collection[str]) -> list[str]:
    try:
        return sorted(set(os.listdir(folder)) & set(names))
    except OSError:
        return []


def packages() -> dict[str, str]:
    """Return the versions of all packages by normalised name; of duplicates, the one that is imported."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower()
        if name:
            found.setdefault(name, distribution.version)
    return dict(sorted(found.items()))


def environment_id() -> str:
    """Return ten hexadecimal digits that are equal for environments with the same software.

    They are from the SHA-256 of the versions of Python and of all packages, and of ids of builds that have
    the same version (see `EngineTraits.build_id`).
    """
    builds = {name: engine_traits(name).build_id() for name in engine_names()}
    return identify(packages(), builds)


def identify(versions: Mapping[str, str], builds: Mapping[str, str]) -> str:
    """Return the id for given versions, and ids of builds by engine ("" to leave one out).

    For Scalestudy itself, only the release counts, not the commit (PEP 440's development and local parts),
    after which an editable install would change its id. Records also hold the full version.
    """
    if "scalestudy" in versions:
        versions = {**versions, "scalestudy": _release(versions["scalestudy"])}
    lines = [f"python=={platform.python_version()}", platform.machine()]
    lines += [
        f"{engine}-build=={build}" for engine, build in sorted(builds.items()) if build
    ]
    lines += [f"{name}=={version}" for name, version in sorted(versions.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:ID_DIGITS]


def _release(version: str) -> str:
    try:
        return Version(version).base_version
    except InvalidVersion:
        return version


def environment_name(variables: Mapping[str, str] | None = None) -> str:
    """Return the container image that this process runs in, or else the folder of its environment."""
    variables = os.environ if variables is None else variables
    return container_image(variables) or sys.prefix


def container_image(variables: Mapping[str, str]) -> str | None:
    """Return the image of this process, from the variables of Apptainer or Singularity."""
    return next(
        (variables[name] for name in IMAGE_VARIABLES if variables.get(name)), None
    )


@dataclass(frozen=True)
class Built:
    """The software of an environment: its version of Python, and its packages by normalised name."""

    python: str
    packages: dict[str, str]


def describe() -> Built:
    """Describe the environment of this Python."""
    return Built(platform.python_version(), packages())


def describe_other(prefix: Path, variables: Mapping[str, str] | None = None) -> Built:
    """Describe the environment in a folder with its own Python, run with `variables` (None: this process's).

    Raises:
        UserError: If there is no environment, or Scalestudy is not installed in it.
    """
    python = prefix / "bin" / "python"
    if not python.exists():
        raise UserError(
            "the folder of a virtual environment",
            f"{prefix}, which has no bin/python",
            "Build one with environments/venv.sh.",
        )
    command = [str(python), "-P", "-m", modules.DESCRIBE_ENVIRONMENT]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT,
        check=False,
        env=variables,
    )
    try:
        return Built(**json.loads(done.stdout))
    except (ValueError, TypeError) as error:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise UserError(
            f"an environment with this version of Scalestudy in {prefix}",
            last,
            f"Install it there: {python} -m pip install --no-deps FOLDER_OF_SCALESTUDY",
        ) from error


if __name__ == "__main__":
    print(json.dumps(asdict(describe())))
