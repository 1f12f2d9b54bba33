"""The machine that a study's points are placed on."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """The resources that a study runs on.

    Attributes:
        gpus: GPUs of a node.
        cores: Cores of a node.
        cluster: Whether workers may spread over as many nodes as they need.
        tasks_per_node: Largest number of workers on a node of a cluster; on GPUs at most one for each. If
            None, one for each GPU, or as many as the cores allow.
        capability: Lowest compute capability of its GPUs, such as (7, 0); None if unknown.
        node_gpus: Number of GPUs that share the cores, if it exceeds the usable GPUs; None for `gpus`.
    """

    gpus: int
    cores: int
    cluster: bool = False
    tasks_per_node: int | None = None
    capability: tuple[int, int] | None = None
    node_gpus: int | None = None

    def device(self, asked: str) -> str:
        """Device of the workers, "cpu" or "gpu", for a value of `launch.device`."""
        if asked == "auto":
            return "gpu" if self.gpus else "cpu"
        if asked == "cpu":
            return "cpu"
        return "gpu"

    def cpus_per_worker(self, device: str = "auto") -> int:
        """Default number of cores of a worker: 1, or on GPUs one GPU's share of the node's cores."""
        if self.device(device) == "cpu" or not self.gpus:
            return 1
        # GPUs that this study cannot use keep their share of the cores.
        sharing = max(self.gpus, self.node_gpus or 0)
        return max(1, self.cores // sharing)

    def nodes(
        self,
        workers: int,
        cpus_per_worker: int,
        device: str = "auto",
        at_most: int | None = None,
    ) -> int:
        """Number of nodes that this many workers need, with `at_most` so many on a node."""
        if not self.cluster:
            return 1
        fitting = self.workers_per_node(cpus_per_worker, device)
        if at_most:
            fitting = min(fitting, at_most)
        return math.ceil(workers / fitting)

    def workers_per_node(self, cpus_per_worker: int, device: str = "auto") -> int:
        """Largest number of workers on a node of a cluster."""
        gpus = self.gpus
        if device == "cpu":
            gpus = 0
        if self.tasks_per_node is None:
            # At least one: whether its cores fit is refused with a remedy elsewhere.
            return gpus or max(1, self.cores // cpus_per_worker)
        if gpus:
            return min(self.tasks_per_node, gpus)
        return self.tasks_per_node
