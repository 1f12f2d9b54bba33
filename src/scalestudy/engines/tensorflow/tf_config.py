"""TF_CONFIG, which tells TensorFlow's multi-worker strategy where its workers listen."""

import json

from scalestudy.cluster.placement import Placement
from scalestudy.errors import UserError


def tf_config(placement: Placement) -> str:
    """The value of TF_CONFIG for one worker: the k-th worker of a host listens there at `port + k`.

    Raises:
        UserError: If the placement names no port or a host is unknown.
    """
    if placement.port is None or not all(placement.hosts):
        raise UserError(
            "the host and the port of every worker, which multi-worker training needs",
            f"hosts {list(placement.hosts)}, port {placement.port} (from {placement.source})",
            "Start it with `scalestudy run`, or with a launcher that names its hosts.",
        )
    hosts, port = placement.hosts, placement.port
    workers = [f"{host}:{port + hosts[:rank].count(host)}" for rank, host in enumerate(hosts)]
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": placement.rank}})
