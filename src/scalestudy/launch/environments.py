"""Virtual environments and images that a point's workers start in, as `[launch] environments` names them."""

import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from scalestudy.config.point import Point
from scalestudy.config.settings import LaunchSettings
from scalestudy.hardware.installed import Built, describe_other
from scalestudy.plugins.engines import EngineTraits, engine_traits
from scalestudy.tasks.file import REMEDY
from scalestudy.util.child_process import ask_file
from scalestudy.util.errors import UserError
from scalestudy.util.own_package import own_source, version

STARTS_WITHIN = 60.0
"""Seconds for Python to start from a slow file system."""
PROGRESS_TIMEOUT = LaunchSettings().progress_timeout


def python_of(folder: str) -> str:
    """Return the path of the Python of a virtual environment."""
    return os.path.join(folder, "bin", "python")


def variables_of(folder: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return `variables`, those of this process, changed for a process in the virtual environment `folder`.

    If Scalestudy is not installed, that process imports the same source as this one.
    """
    changed = dict(variables)
    # It would make the other Python look for its library in this one's folder.
    changed.pop("PYTHONHOME", None)
    changed["VIRTUAL_ENV"] = folder
    programs = os.path.join(folder, "bin")
    before = variables.get("PATH", os.defpath)
    changed["PATH"] = os.pathsep.join((programs, before))
    source = own_source()
    if source:
        path = [str(source)]
        if variables.get("PYTHONPATH"):
            path.append(variables["PYTHONPATH"])
        changed["PYTHONPATH"] = os.pathsep.join(path)
    return changed


def refuse_missing_software(points: Sequence[Point], *, images: bool = False) -> None:
    """Refuse points that the software of this machine, or of the environments that they name, cannot run.

    With `images`, for a queue, an environment may be a container image, and only environments that points
    name are checked: the other software of the nodes is not known here.

    Raises:
        UserError: If an environment, an engine's framework, or a library of one of its strategies is missing.
    """
    libraries: dict[tuple[str, str | None], set[str]] = {}
    for point in points:
        needed = libraries.setdefault((point.engine, point.environment), set())
        if point.traits.library:
            needed.add(point.traits.library)
    for (name, folder), needed in libraries.items():
        missing = _missing(engine_traits(name), folder, needed, images=images)
        if missing:
            raise missing


def _missing(
    engine: EngineTraits,
    folder: str | None,
    libraries: Collection[str],
    *,
    images: bool,
) -> UserError | None:
    """Return an error if an environment (None: that of this process) lacks software that can be checked."""
    if folder is None:
        if images:
            return None
        return engine.missing_software(libraries)
    if images and is_image(folder):
        return None
    return _missing_there(engine, folder, libraries, startable=not images)


def no_folder(engine: EngineTraits, folder: str) -> UserError:
    """Return the error for a missing environment of this engine."""
    return UserError(
        f"the folder of an environment in environments of {engine.name} under [launch]",
        f"{folder}, which does not exist",
        "Build it (environments/venv.sh), or correct the path, which is relative to the study file.",
    )


def is_image(path: str) -> bool:
    """Whether a path is a container image, a file or a root folder, rather than a virtual environment."""
    return os.path.isfile(path) or os.path.isdir(os.path.join(path, "usr"))


def _missing_there(
    engine: EngineTraits,
    folder: str,
    libraries: Collection[str],
    *,
    startable: bool,
) -> UserError | None:
    """Return an error if an environment lacks software; without `startable`, it need not start here."""
    key = f"environments of {engine.name} under [launch]"
    if not os.path.isdir(folder):
        return no_folder(engine, folder)
    if not startable and not starts(folder):
        # Its libraries may come from modules that only jobs load.
        return None
    try:
        built = describe_other(Path(folder), variables_of(folder, os.environ))
    except UserError as error:
        return UserError(f"{error.expected}, in {key}", error.received, error.action)
    return _lacking(engine, built, folder, libraries, key)


def _lacking(
    engine: EngineTraits,
    built: Built,
    folder: str,
    libraries: Collection[str],
    key: str,
) -> UserError | None:
    """Return an error if the packages of an environment lack what the engine and these libraries need."""
    theirs, ours = built.packages.get("scalestudy", "none"), version()
    # Where this process runs from a source tree, the other one imports the same tree: see `variables_of`.
    if own_source() is None and theirs != ours:
        return UserError(
            f"Scalestudy {ours}, as here, in {key}",
            f"{theirs} in {folder}",
            "Install the same version in both.",
        )
    for needed in engine.requirements:
        if not set(needed.packages) & built.packages.keys():
            action = f"With {python_of(folder)}: {engine.install}"
            return UserError(f"{needed.label} in {key}", f"{folder} without it", action)
    for name in libraries:
        # Package indexes take - and _ for the same, and large letters for small ones.
        if name.replace("_", "-").lower() in built.packages:
            continue
        action = f"Install {name} there."
        for library in engine.libraries:
            if library.name == name:
                action = library.repair
        return UserError(f"{name} in {key}", f"{folder} without it", action)
    return None


def starts(folder: str) -> bool:
    """Whether the Python of a virtual environment starts without the modules of a node."""
    try:
        done = subprocess.run(
            [python_of(folder), "-c", ""],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=STARTS_WITHIN,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def build_task(
    path: Path | str,
    info: dict[str, Any],
    within: float = PROGRESS_TIMEOUT,
    environment: str | None = None,
) -> tuple[str, ...]:
    """Build the task's model once, download missing pretrained weights, and try it on two samples.

    Args:
        path: The task file.
        info: {"prepared": folder of the prepared data set}. Without it nothing is built or downloaded, and
            only what needs no data is checked.
        within: Time limit for importing the file in seconds.
        environment: Folder of the virtual environment to build it in; None for that of this process.

    Returns:
        Likely mistakes in it.

    Raises:
        UserError: If the model cannot be built, does not fit its data, or its code does not return.
    """
    python: str = sys.executable
    variables: Mapping[str, str] = os.environ
    if environment:
        python = python_of(environment)
        variables = variables_of(environment, os.environ)
    # In a process of its own: the file may end the program, never return, or need the other environment.
    answer = ask_file(
        "build",
        str(path),
        info,
        within,
        python=python,
        variables=variables,
    )
    if not answer.message:
        action = "Find the code that ends the program, such as os._exit()."
        if "Traceback" in answer.errors:
            action = REMEDY
        raise UserError(
            f"a task file that can be imported: {path}",
            answer.end(),
            action,
        )
    return tuple(answer.message["notes"])
