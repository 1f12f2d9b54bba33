"""What is known about a strategy without importing a framework."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Rendezvous:
    """How the processes of a strategy find each other.

    Attributes:
        name: Name by which its engine knows it.
        secret: Whether the processes authenticate with the run's secret, so that one is needed.
        unproxied: Whether their traffic must bypass the HTTP proxies of the environment.
        obeys: Whether a process does what anybody asks who reaches its port, so that it must not be reached.
    """

    name: str
    secret: bool = False
    unproxied: bool = False
    obeys: bool = False


@dataclass(frozen=True)
class Traits:
    """What is known about a strategy without importing a framework.

    Attributes:
        name: Name in a study file.
        summary: A short description.
        processes: "one" for all workers, or one "per-worker".
        devices: Devices that one process computes on: "one", or one "per-worker" of its workers.
        spans_nodes: Whether its workers may be on several nodes.
        timed: Whether its times count for speed-up; False if one device computes all workers.
        synchronous: Whether all workers take a step together. Otherwise more workers compute different
            updates, not the same ones sooner, and there is no speed-up.
        serve: "module:function" with which the other processes serve rank 0 if it is not synchronous.
        summed_by: Library that moves gradients between workers, for people; "" if none does.
        xla: Whether XLA can compile a worker's computation.
        rendezvous: How its processes find each other; None for a single process.
        compressions: Values of `launch.compression` that it supports, besides "none".
        library: Package of the library that it needs besides the engine.
        engine: The engine that it belongs to.
        most_workers: Largest number of workers that it supports; None for any number.
        plain: Whether its one worker is plain training on one device, the baseline of other strategies.
        stands_for: The strategies that do the work if this is a name for several: for one worker, for
            several on one node, and across nodes.
        join: "module:function" that joins the other workers; "" if other strategies do the work.
        aliases: Names that other tools have for it, in lower-case letters alone; see `named`.
        script_classes: Classes that a script names to use it.
        starts_scripts: Whether `launch` can start a script that uses it.
        share_line: What a script writes to give each worker its share of the samples; "" if none does.
        join_line: What it writes to combine the gradients of the workers.
        joined_by: Ends of other names than its classes and library, of which such a script has one.
        mark: Colour ("#RRGGBB") and shape (as named in Vega-Lite) of its points in figures.
    """

    name: str
    summary: str
    engine: str
    processes: Literal["one", "per-worker"] = "one"
    devices: Literal["one", "per-worker"] = "one"
    spans_nodes: bool = False
    timed: bool = True
    synchronous: bool = True
    serve: str = ""
    summed_by: str = ""
    xla: bool = True
    rendezvous: Rendezvous | None = None
    compressions: tuple[str, ...] = ()
    library: str | None = None
    most_workers: int | None = None
    plain: bool = False
    stands_for: tuple[str, str, str] | None = None
    join: str = ""
    aliases: tuple[str, ...] = ()
    script_classes: tuple[str, ...] = ()
    starts_scripts: bool = False
    share_line: str = ""
    join_line: str = ""
    joined_by: tuple[str, ...] = ()
    mark: tuple[str, str] | None = None

    @property
    def one_process(self) -> bool:
        """Whether one process holds all workers."""
        return self.processes == "one"

    @property
    def one_device(self) -> bool:
        """Whether one device computes all workers."""
        return self.one_process and self.devices == "one"

    @property
    def has_speed_up(self) -> bool:
        """Whether more workers do the same work sooner."""
        return self.timed and self.synchronous

    def processes_of(self, workers: int) -> int:
        """Number of processes of a run."""
        if self.one_process:
            return 1
        return workers

    def workers_at_once(self, workers: int) -> int:
        """Workers of one process that compute at the same time, each on its own device and cores."""
        # One device computes its workers in turn; a process per worker has one.
        if self.one_process and not self.one_device:
            return workers
        return 1

    def implementation(self, workers: int, nodes: int) -> str:
        """Name of the strategy that does the work."""
        if self.stands_for is None:
            return self.name
        one, on_one_node, across = self.stands_for
        # One worker exchanges nothing, wherever it runs.
        if workers == 1:
            return one
        if nodes == 1:
            return on_one_node
        return across
