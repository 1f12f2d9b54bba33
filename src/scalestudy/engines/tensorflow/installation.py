"""How TensorFlow and Horovod are installed, and why no GPUs are found, without importing them here."""

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

LIMIT = 300.0
"""Maximum seconds to import TensorFlow from a slow file system."""
PROGRAM = "import tensorflow as tf; tf.config.list_physical_devices('GPU')"
_LIBRARY = "Could not load dynamic library '"
"""Start of TensorFlow's message about a missing library, at the highest log level."""
PLACE = r"^.*?[\w./]+\.(?:cc|h|py):\d+\] "
MOST = 300
"""Maximum characters of a quoted line."""
SAYS_ALL = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_MAX_VLOG_LEVEL": "3"}
"""Log levels at which TensorFlow names missing libraries."""
REASONS = (
    (
        rf"{_LIBRARY}lib(cuda|nvidia-ml)\.so",
        "the driver's own library does not load",
        "In a container, start it with the driver's libraries: --nv of Apptainer; elsewhere "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
    ),
    (
        _LIBRARY,
        "a library does not load",
        "Reinstall '.[gpu]': CUDA's libraries are packages beside TensorFlow.",
    ),
    (
        "failed call to cuInit|CUDA_ERROR",
        "CUDA does not start",
        "Run nvidia-smi there, and look at the kernel's log.",
    ),
    (
        "Ignoring visible gpu",
        "its own words are",
        "Hide that GPU: set CUDA_VISIBLE_DEVICES to the names of the others in `nvidia-smi -L`.",
    ),
    (
        "Cannot dlopen some GPU|GPU will not be used",
        "its own words are",
        "Install 'tensorflow[and-cuda]' in its environment.",
    ),
)
"""Patterns of log lines that explain missing GPUs, with their meaning and what to do."""


def library_file() -> Path | None:
    """Return Horovod's library for TensorFlow, or None if it is not built."""
    spec = importlib.util.find_spec("horovod")
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or []:
        for file in sorted(Path(folder).glob("tensorflow/mpi_lib*.so")):
            return file
    return None


def library_digest() -> str:
    """Return the SHA-256 of the library, which differs between builds, or "" without one."""
    library = library_file()
    if library is None:
        return ""
    return hashlib.sha256(library.read_bytes()).hexdigest()


def wheel() -> str | None:
    """Return the key of the cached wheel from which Horovod was installed (environments/build-horovod.sh)."""
    try:
        text = metadata.distribution("horovod").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    if not text:
        return None
    path = unquote(urlparse(json.loads(text)["url"]).path)
    return path.split("/")[-2]


def gpu_log(variables: Mapping[str, str] = os.environ) -> list[str]:
    """Return the log lines of a process with these variables, or [] if it cannot start or times out."""
    # With -P, a file of the current folder cannot take the place of a module.
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM],
            env={**variables, **SAYS_ALL},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stderr.decode(errors="replace").splitlines()


def explain_missing_gpus(words: Sequence[str]) -> tuple[str, str]:
    """Return why TensorFlow uses no GPU, and what to do, from the first pattern of `REASONS` that matches."""
    for pattern, meaning, action in REASONS:
        line = next((line for line in words if re.search(pattern, line)), None)
        if line is not None:  # without its time and place in the framework's source
            return f"{meaning}: {re.sub(PLACE, '', line).strip()[:MOST]}", action
    return (
        "built with CUDA, it does not say why",
        "Start Python there with TF_CPP_MAX_VLOG_LEVEL=3, and list its GPUs.",
    )
