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
PLACE = r"^.*?[\w./]+\.(?:cc|h|py):\d+\] "
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


REASONS = (
    (
        rf"{_LIBRARY}lib(cuda|nvidia-ml)\.so", "the driver's own library does not load",
        "In a container, start it with the driver's libraries: --nv of Apptainer; elsewhere "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
    ),
    (
        _LIBRARY, "a library does not load",
        "Install '.[gpu]' anew: CUDA's libraries are packages beside TensorFlow.",
    ),
    (
        "failed call to cuInit|CUDA_ERROR", "CUDA does not start",
        "Run nvidia-smi there, and look at the kernel's log.",
    ),
    (
        "Ignoring visible gpu", "its own words are",
        "Hide that GPU: set CUDA_VISIBLE_DEVICES to the names of the others in `nvidia-smi -L`.",
    ),
    (
        "Cannot dlopen some GPU|GPU will not be used", "its own words are",
        "Install 'tensorflow[and-cuda]' in its environment.",
    ),
)  # fmt: skip
"""By which line it uses no GPU, what that means, and what to do."""


def explained(words: Sequence[str]) -> tuple[str, str]:
    """Why it uses no GPU, and what to do: by its first line about a library, CUDA's start, or GPUs."""
    for pattern, meaning, action in REASONS:
        line = next((line for line in words if re.search(pattern, line)), None)
        if line is not None:  # without its time and place in the framework's source
            return f"{meaning}: {re.sub(PLACE, '', line).strip()[:MOST]}", action
    return (
        "built with CUDA, it does not say why",
        "Start Python there with TF_CPP_MAX_VLOG_LEVEL=3, and list its GPUs.",
    )
