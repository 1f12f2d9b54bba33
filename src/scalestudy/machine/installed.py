"""What is installed in this Python, and the short name that follows from it."""

import hashlib
import importlib.util
import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

from packaging.version import InvalidVersion, Version

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

    SHA-256 of the versions of Python and of all packages, and of Horovod's build, which its version does
    not tell apart: with Gloo, MPI or NCCL.
    """
    return identify(packages(), horovod_wheel() or horovod_digest())


def identify(versions: Mapping[str, str], horovod: str) -> str:
    """The same of given versions and a given build of Horovod ("" without it).

    Of Scalestudy itself the release counts, and not the commit (PEP 440's development and local parts): an
    editable install would have another name after each. Records hold the whole version beside the name.
    """
    if "scalestudy" in versions:
        versions = {**versions, "scalestudy": _release(versions["scalestudy"])}
    lines = [f"python=={platform.python_version()}", platform.machine(), f"horovod-build=={horovod}"]
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


def has_tensorflow() -> bool:
    """Whether TensorFlow is installed here."""
    return importlib.util.find_spec("tensorflow") is not None


def has_horovod() -> bool:
    """Whether Horovod is installed here, with TensorFlow's part or without it."""
    return importlib.util.find_spec("horovod") is not None


def horovod_built() -> bool:
    """Whether Horovod and its TensorFlow library are installed."""
    return horovod_library() is not None


def horovod_library() -> Path | None:
    """Horovod's library for TensorFlow, if it is built."""
    spec = importlib.util.find_spec("horovod")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("tensorflow/mpi_lib*.so")):
            return file
    return None


def horovod_digest() -> str:
    """SHA-256 of that library; "" without it. Builds of one source differ in it."""
    library = horovod_library()
    return hashlib.sha256(library.read_bytes()).hexdigest() if library else ""


def horovod_wheel() -> str | None:
    """Key of the cached wheel that Horovod was installed from (environments/build-horovod.sh)."""
    try:
        text = metadata.distribution("horovod").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    return unquote(urlparse(json.loads(text)["url"]).path).split("/")[-2] if text else None
