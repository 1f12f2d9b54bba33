"""Read from the graph of a traced training step which collectives it has and when they can start."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

COLLECTIVES = ("CollectiveReduceV2", "HorovodGroupedAllreduce", "HorovodAllreduce")
PASSED_ON = ("Identity", "IdentityN", "Reshape", "ConcatV2")
"""Operations that only pass tensors on to a collective."""


class Exchange(NamedTuple):
    """The collectives of one device's step.

    Attributes:
        collectives: Their number.
        early: Number of collectives that wait for no gradient of a later one.
    """

    collectives: int
    early: int


def exchange(compiled: Any) -> Exchange:
    """Collectives in the first trace of a `Compiled`."""
    return in_graph(_graph(compiled))


def summed_types(compiled: Any) -> list[int]:
    """Types of the tensors that collectives sum in that graph, as TensorFlow's type numbers."""
    return sorted({node.attr["T"].type for node in _graph(compiled) if _sums(node)})


def _graph(compiled: Any) -> Any:
    traced, *_ = compiled._compiled._list_all_concrete_functions()
    definition = traced.graph.as_graph_def()
    graphs = [
        definition.node,
        *(function.node_def for function in definition.library.function),
    ]
    return max(graphs, key=lambda nodes: sum(map(_sums, nodes)))


def in_graph(graph: Iterable[Any]) -> Exchange:
    """Collectives among the nodes of a graph, on the first of its devices."""
    nodes = {node.name: node for node in graph}
    found = [node for node in nodes.values() if _sums(node)]
    first = sorted({node.device for node in found})[:1]
    found = [node for node in found if node.device in first]
    waited = [_ancestors(nodes, node) for node in found]
    taken = [set(_gradients(nodes, node)) for node in found]
    assert all(taken), (
        "a collective of no gradients: this looks for them in the wrong way"
    )
    early = [
        not any(waited[index] & later for later in taken[index + 1 :])
        for index in range(len(found))
    ]
    return Exchange(len(found), sum(early))


def _sums(node: Any) -> bool:
    return node.op in COLLECTIVES


def _inputs(nodes: dict[str, Any], node: Any) -> Iterator[str]:
    for each in node.input:
        name = each.lstrip("^").split(":")[0]
        if name in nodes:
            yield name


def _ancestors(nodes: dict[str, Any], node: Any) -> set[str]:
    """All nodes that must be computed before this one, including control dependencies."""
    seen: set[str] = set()
    left = list(_inputs(nodes, node))
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += _inputs(nodes, nodes[name])
    return seen


def _gradients(nodes: dict[str, Any], node: Any) -> Iterator[str]:
    """Nodes that compute the tensors summed by a collective."""
    for each in node.input:
        name = each.split(":")[0]
        if each.startswith("^") or name not in nodes:
            continue
        if nodes[name].op in PASSED_ON:
            yield from _gradients(nodes, nodes[name])
        elif nodes[name].op not in ("Const", "Placeholder"):
            yield name
