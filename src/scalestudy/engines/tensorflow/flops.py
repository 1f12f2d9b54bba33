"""Floating-point operations of a compiled function, counted in its graph for inputs of known shapes.

The graph is the one that computes: forward and backward, with what the backward pass leaves out. Shapes are
found anew by TensorFlow for one call's inputs; nothing is traced or computed.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from scalestudy.engines.base import Flops
from scalestudy.engines.tensorflow.private import graph_of, make_argument, resource_type, variable_of
from scalestudy.engines.tensorflow.products import UnknownError, products

CALLS = ("PartitionedCall", "StatefulPartitionedCall")
LOOPS = ("While", "StatelessWhile")
CHOICES = ("If", "StatelessIf", "Case", "StatelessCase")


def flops_of(function: Any, shapes: Sequence[Any], samples: int, *, loops: int) -> Flops:
    """Floating-point operations for each sample.

    Args:
        function: A concrete function of a call.
        shapes: Of its arguments (`tf.TensorShape`), flattened; captured variables follow them by themselves.
        samples: Rows in one step of these arguments.
        loops: How deep loops are ours, one round of which is a step; others go round who knows how often.
    """
    counting = _Counting(function)
    try:
        total = counting.function(function.function_def, _arguments(function, shapes), loops)
    except (ValueError, TypeError, KeyError, tf.errors.OpError) as error:
        return Flops(None, (f"the graph ({type(error).__name__})",))
    if counting.unknown or not total or not samples:
        return Flops(None, tuple(sorted(counting.unknown)))
    return Flops(total / samples)


def _arguments(function: Any, shapes: Sequence[Any]) -> list[Any]:
    """What is known of each argument: its shape, or the variable it stands for."""
    given = [variable_of(each) if each.dtype == tf.resource else each.shape for each in function.inputs]
    return [*shapes, *given[len(shapes) :]]


class _Counting:
    """Counts through functions that call others.

    Attributes:
        unknown: Operations that could not be counted.
    """

    def __init__(self, function: Any) -> None:
        self._library = function.graph.as_graph_def().library
        self._functions = {each.signature.name: each for each in self._library.function}
        self.unknown: set[str] = set()

    def function(self, function: Any, known: Sequence[Any], loops: int) -> int:
        """Of a FunctionDef whose arguments are `known`."""
        graph = graph_of(function)
        graph.library.CopyFrom(self._library)
        nodes = {node.name: node for node in graph.node}
        for argument, each in zip(function.signature.input_arg, known, strict=True):
            node = nodes[argument.name]
            if node.attr["dtype"].type == resource_type():
                make_argument(node, each if isinstance(each, tuple) else None)
            elif isinstance(each, tf.TensorShape):
                node.attr["shape"].shape.CopyFrom(each.as_proto())
        needed = _needed(function, nodes)
        with tf.Graph().as_default() as known_shapes:
            tf.graph_util.import_graph_def(graph, name="")
        operations = [each for each in known_shapes.get_operations() if each.name in needed]
        return sum(self._operation(each, loops) for each in operations)

    def _operation(self, operation: Any, loops: int) -> int:
        kind = operation.type
        try:
            if kind in CALLS:
                return self._called(operation, "f", operation.inputs, loops)
            if kind in LOOPS:
                return self._loop(operation, loops)
            if kind in CHOICES:
                names = ("branches",) if "Case" in kind else ("then_branch", "else_branch")
                return max(self._called(operation, name, operation.inputs[1:], loops) for name in names)
            return products(operation)
        except UnknownError as error:
            self.unknown.add(str(error))
            return 0

    def _loop(self, operation: Any, loops: int) -> int:
        before = set(self.unknown)
        once = self._called(operation, "body", operation.inputs, loops - 1)
        if loops > 0 or (not once and before == self.unknown):
            return once
        raise UnknownError("a loop of unknown length")

    def _called(self, operation: Any, name: str, inputs: Sequence[Any], loops: int) -> int:
        known = [variable_of(each) if each.dtype == tf.resource else each.shape for each in inputs]
        value = operation.node_def.attr[name]
        called = list(value.list.func) or [value.func]
        return max(self.function(self._functions[each.name], known, loops) for each in called)


def _needed(function: Any, nodes: dict[str, Any]) -> set[str]:
    """Names of the nodes that the function's results or effects take: others are never computed."""
    todo = [each.partition(":")[0] for each in (*function.ret.values(), *function.control_ret.values())]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in found and name in nodes:
            found.add(name)
            todo += [each.lstrip("^").partition(":")[0] for each in nodes[name].input]
    return found
