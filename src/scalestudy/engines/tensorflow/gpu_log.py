"""What TensorFlow says while it looks for GPUs, in a process of its own. It is not imported here."""

import os
import subprocess
import sys
from collections.abc import Mapping

LIMIT = 300.0
"""Seconds to import it, from a slow file system."""
PROGRAM = "import tensorflow as tf; tf.config.list_physical_devices('GPU')"
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
