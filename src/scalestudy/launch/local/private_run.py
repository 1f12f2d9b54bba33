"""What the workers of one run have for themselves: a secret, and where this machine allows it a network."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

from scalestudy import modules
from scalestudy.cluster.secret import SECRET, new_secret
from scalestudy.machine.network_namespace import READY

NETWORK = "SCALESTUDY_NETWORK"
"""The process whose network a worker joins, or why there is none; "shared" where the user wants none."""
SHARED = "shared"


@contextlib.contextmanager
def private_run(processes: int, variables: Mapping[str, str] = os.environ) -> Iterator[dict[str, str]]:
    """Variables for the workers of a run; what they name is there within.

    TensorFlow listens at all interfaces, and does what whoever connects tells it; Gloo knows no password
    for its data. In a network of their own nobody else on this machine reaches either. A process
    alone listens nowhere, and gets nothing.

    Args:
        processes: Of the run.
        variables: Of the launcher.
    """
    if processes == 1:
        yield {}
        return
    own = {SECRET: new_secret()}
    if variables.get(NETWORK) == SHARED:
        yield own
        return
    # Of a session of its own, since Ctrl-C must not end it before the workers.
    with subprocess.Popen(
        [sys.executable, "-P", "-m", modules.NETWORK_NAMESPACE],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, start_new_session=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        said = holder.stdout.readline().strip()
        yield own | {NETWORK: str(holder.pid) if said == READY else said or "the namespace's process ended"}
