"""The environment of a worker process, made before its framework is imported: for runs and checks alike."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scalestudy.hardware import shadowing, visible
from scalestudy.study.engines import EngineTraits
from scalestudy.study.strategies import Rendezvous

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement
    from scalestudy.hardware.devices import Gpu

DROPPED = "SCALESTUDY_LIBRARY_FOLDERS_DROPPED"
"""Variable that tells a process, and its record, what was dropped from LD_LIBRARY_PATH for it."""


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
    engine: EngineTraits,
    *,
    gpus: Sequence[str] | None,
    rendezvous: Rendezvous | None = None,
    placement: "Placement | None" = None,
    quiet: bool = False,
) -> Changes:
    """What changes in the variables of a process before it imports its framework.

    LD_LIBRARY_PATH (see `library_changes`) is read when a process starts: in a process that runs, it changes
    what its children load.

    Args:
        variables: As they are.
        engine: Whose framework it is.
        gpus: Names of the GPUs that it computes on (see `own_gpus`); none of them on CPUs. None leaves it
            all that it sees.
        rendezvous: How its strategy's processes find each other.
        placement: This process among those; needed where there are several.
        quiet: Whether its last line of output is an answer, so that the framework says errors only.

    Raises:
        UserError: If the placement lacks what the rendezvous needs.
    """
    own = engine.environment(
        variables, gpus=gpus is None or bool(gpus), rendezvous=rendezvous, process=placement, quiet=quiet
    )
    values = visible.ORDER if gpus is None else visible.showing(gpus)
    values = values | {name: value for name, value in own.items() if value is not None}
    libraries = library_changes(variables)
    unwanted = [name for name, value in own.items() if value is None]
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
