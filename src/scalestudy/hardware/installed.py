"""What is installed in this Python and beside it, and the short name that follows from it."""

import hashlib
import os
import platform
import re
import sys
from collections.abc import Mapping
from importlib import metadata

from packaging.version import InvalidVersion, Version

from scalestudy.study.engines import engine_names, engine_traits

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
    builds = {name: engine_traits(name).build_id() for name in engine_names()}
    return identify(packages(), builds)


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
