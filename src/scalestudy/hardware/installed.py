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
from collections.abc import Collection, Mapping, Sequence
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
        changed = dict(variables)
        changed.pop(LIBRARY_PATH, None)
        if self.value:
            changed[LIBRARY_PATH] = self.value
        return changed


@functools.cache
def package_libraries() -> dict[str, str]:
    """Return the folders of the libraries in NVIDIA's packages of this Python, by file name."""
    # A namespace package: NVIDIA's packages share this folder, and none of them is imported.
    spec = importlib.util.find_spec("nvidia")
    if spec is None:
        return {}
    found = {}
    for folder in spec.submodule_search_locations or ():
        for file in sorted(Path(folder).glob("*/lib/*.so*")):
            found[file.name] = str(file.parent)
    return found


def library_path(
    variables: Mapping[str, str], own: Mapping[str, str] | None = None
) -> LibraryPath:
    """Return LD_LIBRARY_PATH without the folders that shadow a library of the packages.

    A folder that holds the driver's library stays. `own` are the folders of libraries in packages, by file
    name; by default, those installed.
    """
    if own is None:
        own = package_libraries()
    given = variables.get(LIBRARY_PATH, "")
    kept: list[str] = []
    dropped: list[str] = []
    passed: list[str] = []
    for folder in given.split(os.pathsep):
        if not folder:
            continue
        passed.append(folder)
        if _shadows(folder, own, passed):
            dropped.append(folder)
        else:
            kept.append(folder)
    if not dropped:
        return LibraryPath(given, [])
    return LibraryPath(os.pathsep.join(kept), dropped)


def _shadows(folder: str, own: Mapping[str, str], passed: Sequence[str]) -> bool:
    """Whether a library in this folder is found before that of a package, whose folder is not in `passed`."""
    # Without the driver's library, no GPU could be used at all.
    if Path(folder, DRIVER_LIBRARY).exists():
        return False
    for name in _held(folder, own):
        if own[name] not in passed:
            return True
    return False


def _held(folder: str, names: Collection[str]) -> list[str]:
    # LD_LIBRARY_PATH often names folders that do not exist.
    try:
        there = set(os.listdir(folder))
    except OSError:
        return []
    return sorted(there & set(names))


def packages() -> dict[str, str]:
    """Return the versions of all packages by normalised name; of duplicates, the one that is imported."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        # The metadata of a broken installation has no name.
        name = distribution.metadata["Name"] or ""
        # As PEP 503 normalises names.
        name = re.sub(r"[-_.]+", "-", name).lower()
        if name:
            found.setdefault(name, distribution.version)
    return dict(sorted(found.items()))


def environment_id() -> str:
    """Return ten hexadecimal digits that are equal for environments with the same software.

    They are from the SHA-256 of the versions of Python and of all packages, and of ids of builds that have
    the same version (see `EngineTraits.build_id`).
    """
    builds = {}
    for name in engine_names():
        builds[name] = engine_traits(name).build_id()
    return identify(packages(), builds)


def identify(versions: Mapping[str, str], builds: Mapping[str, str]) -> str:
    """Return the id for given versions, and ids of builds by engine ("" to leave one out).

    For Scalestudy itself, only the release counts, not the commit (PEP 440's development and local parts),
    after which an editable install would change its id. Records also hold the full version.
    """
    lines = [f"python=={platform.python_version()}", platform.machine()]
    for engine, build in sorted(builds.items()):
        if build:
            lines.append(f"{engine}-build=={build}")
    for name, version in sorted(versions.items()):
        counted = version
        if name == "scalestudy":
            counted = _release(version)
        lines.append(f"{name}=={counted}")
    digest = hashlib.sha256("\n".join(lines).encode())
    return digest.hexdigest()[:ID_DIGITS]


def _release(version: str) -> str:
    try:
        return Version(version).base_version
    except InvalidVersion:
        return version


def environment_name(variables: Mapping[str, str] | None = None) -> str:
    """Return the container image that this process runs in, or else the folder of its environment."""
    if variables is None:
        variables = os.environ
    return container_image(variables) or sys.prefix


def container_image(variables: Mapping[str, str]) -> str | None:
    """Return the image of this process, from the variables of Apptainer or Singularity."""
    for name in IMAGE_VARIABLES:
        if variables.get(name):
            return variables[name]
    return None


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
    # TypeError: an answer of another version, with other names.
    except (ValueError, TypeError) as error:
        errors = done.stderr.strip().splitlines()
        last = "no output"
        if errors:
            last = errors[-1]
        raise UserError(
            f"an environment with this version of Scalestudy in {prefix}",
            last,
            f"Install it there: {python} -m pip install --no-deps FOLDER_OF_SCALESTUDY",
        ) from error


if __name__ == "__main__":
    print(json.dumps(asdict(describe())))
