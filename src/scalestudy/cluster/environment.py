"""The environment of a worker process, made before its framework is imported: for runs and checks alike."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scalestudy.cluster.proxies import PROXIES
from scalestudy.cluster.tf_config import tf_config
from scalestudy.machine import visible

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement
    from scalestudy.machine.devices import Gpu

TF_CONFIG = "TF_CONFIG"
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
    if meets == "tensorflow" and placement is not None:
        values[TF_CONFIG] = tf_config(placement)
        unwanted: Sequence[str] = PROXIES  # gRPC would send the workers' traffic there
    else:
        unwanted = (TF_CONFIG,)
    return Changes(values, [name for name in unwanted if name in variables])


def own_gpus(
    variables: Mapping[str, str], gpus: "Sequence[Gpu]", *, local_rank: int, devices: int = 1
) -> list[str]:
    """Names of the GPUs of one process: the first ones for a process that computes on several, else its own.

    Args:
        variables: As its launcher left them.
        gpus: What NVML says that a process with these variables may use.
        local_rank: Its index among the processes of this node.
        devices: GPUs that it computes on.
    """
    first = 0 if devices > 1 else local_rank
    return visible.dealt(variables, gpus, range(first, first + devices))
