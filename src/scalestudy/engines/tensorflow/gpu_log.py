"""What TensorFlow says while it looks for GPUs, in a process of its own. It is not imported here."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence

LIMIT = 300.0
"""Seconds to import it, from a slow file system."""
PROGRAM = "import tensorflow as tf; tf.config.list_physical_devices('GPU')"
_LIBRARY = "Could not load dynamic library '"
"""How TensorFlow begins to speak of a library, if it says all."""
MOST = 300
"""Characters of a quoted line."""
SAYS_ALL = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_MAX_VLOG_LEVEL": "3"}
"""Only so does it name the libraries that it misses."""


def gpu_log(variables: Mapping[str, str] = os.environ) -> list[str]:
    """Its lines, for a process with these variables; none if it does not come to an end."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM], env={**variables, **SAYS_ALL}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stderr.decode(errors="replace").splitlines()


def explained(words: Sequence[str]) -> tuple[str, str]:
    """Why it uses no GPU, and what to do: by its first line about a library, CUDA's start, or GPUs."""
    if line := _found(words, rf"{_LIBRARY}lib(cuda|nvidia-ml)\.so"):
        return (
            f"the driver's own library does not load: {line}",
            "In a container, start it with the driver's libraries: --nv of Apptainer; elsewhere "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        )
    if line := _found(words, _LIBRARY):
        return (
            f"a library does not load: {line}",
            "Install '.[gpu]' anew: CUDA's libraries are packages beside TensorFlow.",
        )
    if line := _found(words, "failed call to cuInit|CUDA_ERROR"):
        return (f"CUDA does not start: {line}", "Run nvidia-smi there, and look at the kernel's log.")
    if line := _found(words, "Ignoring visible gpu"):
        return (
            f"its own words are: {line}",
            "Hide that GPU: set CUDA_VISIBLE_DEVICES to the names of the others in `nvidia-smi -L`.",
        )
    if line := _found(words, "Cannot dlopen some GPU|GPU will not be used"):
        return (f"its own words are: {line}", "Install 'tensorflow[and-cuda]' in its environment.")
    return (
        "built with CUDA, it does not say why",
        "Start Python there with TF_CPP_MAX_VLOG_LEVEL=3, and list its GPUs.",
    )


def _found(words: Sequence[str], pattern: str) -> str:
    """The first line with this in it, without its time and place in the framework's source."""
    line = next((line for line in words if re.search(pattern, line)), "")
    return re.sub(r"^.*?[\w./]+\.(?:cc|h|py):\d+\] ", "", line).strip()[:MOST]
