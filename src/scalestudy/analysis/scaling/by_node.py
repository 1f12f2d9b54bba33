"""Scaling by node: the smallest full node is the unit, S = its time over that of k nodes, E = S / k.

Devices of unlike machines cannot be compared one by one, nodes are what is bought and charged for
("node-based scaling", arXiv:2510.12166).
"""

from dataclasses import dataclass

from scalestudy.analysis.measures import Measures
from scalestudy.analysis.scaling.series import Series
from scalestudy.analysis.statistics import Estimate


@dataclass(frozen=True)
class NodeRow:
    """A number of full nodes: its workers, and its speed-up over one full node by steady throughput."""

    nodes: int
    workers: int
    speedup: Estimate

    @property
    def efficiency(self) -> Estimate:
        """S / k."""
        return self.speedup.scaled(1 / self.nodes)


def by_node(series: Series, measures: Measures) -> tuple[NodeRow, ...]:
    """Rows of one full node and of several; none where no more than one node was full."""
    full = max((count for count, nodes in series.nodes.items() if nodes == 1), default=0)
    filled = {count: nodes for count, nodes in series.nodes.items() if full and count == nodes * full}
    values = measures.throughput.values
    unit = series.key.with_(series.key.strategy, full)
    if len(filled) < 2 or not values[unit]:
        return ()
    rows = []
    for count, nodes in sorted(filled.items()):
        key = series.key.with_(series.key.strategy, count)
        if values[key]:
            one = Estimate(1.0)
            rows.append(NodeRow(nodes, count, one if nodes == 1 else measures.throughput.ratio(key, unit)))
    return tuple(rows)
