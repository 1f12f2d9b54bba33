"""Which collectives there are, without a framework: who joins by each, what it needs, what may mend it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from scalestudy.study.strategies import DEFAULT, HOROVOD, MULTIWORKER, traits

LIBRARY = str(HOROVOD.library)
"""The library whose build decides which of its collectives there are."""
TCP = "See that the run's ports are open between these hosts, and that no proxy is set."
NCCL = "Try NCCL_SOCKET_IFNAME={interface}, NCCL_IB_DISABLE=1 and NCCL_DEBUG=INFO (env in the site profile)."


@dataclass(frozen=True)
class Collective:
    """One way in which all ranks sum an array.

    Attributes:
        name: As checks, their reports and their options name it.
        label: For people.
        strategy: The strategy whose processes sum in this way.
        mend: What often mends it; `{interface}` stands for the network interface that host names lead to.
        communication: As `launch.communication` names it, where the strategy lets the study choose.
        device: "cpu" if it sums in the memory of the host always, "gpu" if only between GPUs.
        built_with: What the strategy's library must be built with.
        launcher: The one launcher whose processes it works in, by `Placement.source`; "" for any. That
            launcher tells the ranks of each other, once in the life of a rank.
        any_port: Whether it also listens at ports of the system's choice.
        also: What else of `launch.communication` it is taken for, where it can be used.
        spare: Whether nobody uses it where there are GPUs: another one is taken for it.
    """

    name: str
    label: str
    strategy: str
    mend: str
    communication: str | None = None
    device: Literal["cpu", "gpu"] | None = None
    built_with: tuple[str, ...] = ()
    launcher: str = ""
    any_port: bool = False
    also: tuple[str, ...] = ()
    spare: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """What a study that uses it needs: its communication, or what its processes meet by."""
        return (self.communication or str(traits(self.strategy).meets), *self.also)

    def of_use(self, *, gpu: bool) -> bool:
        """Whether runs can use it, on GPUs or on CPUs."""
        return not self.spare if gpu else self.device != "gpu"

    @property
    def library(self) -> str | None:
        """Library that it needs beside the engine."""
        return traits(self.strategy).library

    @property
    def swept(self) -> str:
        """The strategy that a study names to use it."""
        return DEFAULT if self.strategy in (traits(DEFAULT).stands_for or ()) else self.strategy


COLLECTIVES = (
    Collective("ring", "TensorFlow RING", MULTIWORKER.name, TCP, communication="ring"),
    Collective("auto", "TensorFlow AUTO", MULTIWORKER.name, TCP, communication="auto", spare=True),
    Collective(
        "nccl", "TensorFlow NCCL", MULTIWORKER.name, NCCL, communication="nccl", device="gpu", any_port=True,
        also=("auto",),
    ),
    Collective(
        "horovod-gloo", "Horovod Gloo", HOROVOD.name,
        "Try HOROVOD_GLOO_IFACE={interface} (env in the site profile).",
        device="cpu", built_with=("gloo",), any_port=True,
    ),
    Collective(
        "horovod-nccl", "Horovod NCCL", HOROVOD.name, NCCL, device="gpu", built_with=("gloo", "nccl"),
        any_port=True,
    ),
    Collective(
        "horovod-mpi", "Horovod MPI", HOROVOD.name,
        "Try HOROVOD_CONTROLLER=gloo (env in the site profile), with a Horovod that has Gloo.",
        built_with=("mpi",), launcher="openmpi", any_port=True,
    ),
)  # fmt: skip
"""In the order in which they are tried; of one need, what is preferred comes later."""


def collective(name: str) -> Collective:
    """The collective of this name.

    Raises:
        KeyError: There is none.
    """
    return {each.name: each for each in COLLECTIVES}[name]


def meeting(needs: Iterable[str], *, gpu: bool | None = None) -> list[Collective]:
    """The collectives by which a study's needs may be met, on GPUs or on CPUs; on either where None."""
    wanted = set(needs)
    able = [each for each in COLLECTIVES if gpu is None or each.of_use(gpu=gpu)]
    return [each for each in able if wanted & set(each.needs)]
