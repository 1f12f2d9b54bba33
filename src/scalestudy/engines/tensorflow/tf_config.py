"""TF_CONFIG, which tells TensorFlow's multi-worker strategy where its workers listen."""

import json

from scalestudy.study.engines import Process
from scalestudy.util.errors import UserError

TF_CONFIG = "TF_CONFIG"
TYPES = {"worker": "worker", "parameter-server": "ps", "coordinator": "chief"}
"""What TensorFlow calls the roles of processes."""


def tf_config(process: Process) -> str:
    """The value of TF_CONFIG for one process: the k-th process of a host listens there at `port + k`.

    Raises:
        UserError: If there is no port or a host is unknown.
    """
    hosts, port, rank = process.hosts, process.port, process.rank
    if port is None or not all(hosts):
        raise UserError(
            "the host and the port of every worker, which multi-worker training needs",
            f"hosts {list(hosts)}, port {port} (from {process.source})",
            "Start it with `scalestudy run`, or with a launcher that names its hosts.",
        )
    cluster: dict[str, list[str]] = {}
    roles = process.roles or ("worker",) * len(hosts)
    for other, role in enumerate(roles):
        if other == rank:
            task = {"type": TYPES[role], "index": len(cluster.get(TYPES[role], ()))}
        cluster.setdefault(TYPES[role], []).append(
            f"{hosts[other]}:{port + hosts[:other].count(hosts[other])}"
        )
    return json.dumps({"cluster": cluster, "task": task})
