"""The environment of a worker process, made before its framework is imported: for runs and checks alike."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scalestudy.cluster.proxies import PROXIES
from scalestudy.engines.tensorflow.tf_config import tf_config
from scalestudy.machine import shadowing, visible

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement
    from scalestudy.machine.devices import Gpu

TF_CONFIG = "TF_CONFIG"
DROPPED = "SCALESTUDY_LIBRARY_FOLDERS_DROPPED"
"""Variable that tells a process, and its record, what was dropped from LD_LIBRARY_PATH for it."""
QUIET = "2"
"""Messages of TensorFlow from errors on: for a process whose last line of output is its answer."""


class Changes(NamedTuple):
    """What a process's variables need.

    Attributes:
        values: Variables to set.
        unset: Names of those to unset; each is set now.
    """

    values: dict[str, str]
    unset: list[str]

    def applied(self, variables: Mapping[str, str]) -> dict[str, str]:
        """All variables of the process, from those of its parent."""
        kept = {name: value for name, value in variables.items() if name not in self.unset}
        return kept | self.values


def process_environment(
    variables: Mapping[str, str],
    *,
    gpus: Sequence[str] | None,
    meets: str | None = None,
    placement: "Placement | None" = None,
    messages: str = "1",
) -> Changes:
    """What changes in the variables of a process before it imports its framework.

    LD_LIBRARY_PATH (see `library_changes`) is read when a process starts: in a process that runs, it changes
    what its children load.

    Args:
        variables: As they are.
        gpus: Names of the GPUs that it computes on (see `own_gpus`); none of them on CPUs. None leaves it
            all that it sees.
        meets: How its strategy's processes find each other: see `study.strategies.Traits`.
        placement: This process among those; needed where they meet by "tensorflow".
        messages: TensorFlow's messages from this level on, where the user has not said: 0 all, 1 without
            information, 2 errors.

    Raises:
        UserError: If the processes meet by TF_CONFIG, and the placement names no hosts or no port.
    """
    values = {
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": variables.get("TF_CPP_MIN_LOG_LEVEL", messages),
    }
    values |= visible.ORDER if gpus is None else visible.showing(gpus)
    if gpus is None or gpus:
        values |= {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_GPU_THREAD_MODE": "gpu_private"}
        flags = shadowing.xla_flags(variables)
        values |= {} if flags is None else {"XLA_FLAGS": flags}
    if meets == "tensorflow" and placement is not None:
        values[TF_CONFIG] = tf_config(placement)
        unwanted: Sequence[str] = PROXIES  # gRPC would send the workers' traffic there
    else:
        unwanted = (TF_CONFIG,)
    libraries = library_changes(variables)
    unset = [name for name in (*unwanted, *libraries.unset) if name in variables]
    return Changes(values | libraries.values, unset)


def library_changes(variables: Mapping[str, str]) -> Changes:
    """What changes so that a process loads the packages' CUDA, and no module's; nothing if it does so."""
    path = shadowing.library_path(variables)
    if not path.dropped:
        return Changes({}, [])
    told = {DROPPED: os.pathsep.join(path.dropped)}
    if path.value:
        return Changes({shadowing.VARIABLE: path.value, **told}, [])
    return Changes(told, [shadowing.VARIABLE])


def own_gpus(
    variables: Mapping[str, str], gpus: "Sequence[Gpu]", *, local_rank: int, devices: int = 1
) -> list[str]:
    """Names of the GPUs of one process: the first ones for a process that computes on several, else its own.

    Args:
        variables: As its launcher left them.
        gpus: What NVML says that a process with these variables may use.
        local_rank: Its index among the processes of this node that see the same GPUs: `Placement.gpu_place`.
        devices: GPUs that it computes on.
    """
    first = 0 if devices > 1 else local_rank
    return visible.dealt(variables, gpus, range(first, first + devices))
