"""Floating-point operations of a compiled function, counted in its graph for inputs of known shapes."""

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import tensorflow as tf

from scalestudy.engines.base import Flops
from scalestudy.engines.tensorflow.private import graph_of, make_argument, resource_type, variable_of

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


Count = Callable[[Any], int]
Moved = Callable[[Any], Any]
UNCOUNTED = re.compile(
    r"MatMul|Matmul|Conv|Einsum|Rnn|RNN|LSTM|GRU|Attention|Cholesky|Svd|Qr$|Solve|MatrixInverse|FFT|XlaDot|Xla.*Call"
)
"""Operations that multiply matrices or more, as their names say."""


class UnknownError(Exception):
    """An operation that multiplies, and whose products cannot be counted."""


def products(operation: Any) -> int:
    """Floating-point operations of one operation of a graph; 0 for what does not multiply.

    Raises:
        UnknownError: If it does, in a way or of shapes that are unknown.
    """
    kind = operation.type
    if kind not in COUNTED:
        if UNCOUNTED.search(kind):
            raise UnknownError(kind)
        return 0
    try:
        return COUNTED[kind](operation)
    except (ValueError, TypeError, IndexError) as error:
        raise UnknownError(f"{kind} of unknown shape") from error


def _matrices(operation: Any) -> int:
    return 2 * _size(operation.outputs[0]) * _dims(operation.inputs[0])[_inner(operation)]


def _convolution(moved: Moved, filters: Moved, window: slice) -> Count:
    """Of a convolution that moves a window (axes of its filters) over so many places and channels."""
    return lambda operation: 2 * _size(moved(operation)) * prod(_dims(filters(operation))[window])


def _inner(operation: Any) -> int:
    """Axis of the first factor that is summed over."""
    transposed = operation.get_attr("transpose_a" if operation.type == "MatMul" else "adj_x")
    return -2 if transposed else -1


def _einsum(operation: Any) -> int:
    """All indices of two factors, each once; one factor alone is summed or transposed."""
    left = operation.get_attr("equation").decode().partition("->")[0].split(",")
    if len(left) == 1:
        return 0
    sizes: dict[str, int] = {}
    for labels, tensor in zip(left, operation.inputs, strict=True):
        dims = _dims(tensor)
        before, dots, after = labels.partition("...")
        names = [*before, *(f"...{place}" for place in range(len(dims) - len(before) - len(after))), *after]
        if len(names) != len(dims) or (not dots and len(before) != len(dims)):
            raise ValueError(labels)
        for name, size in zip(names, dims, strict=True):
            sizes[name] = max(size, sizes.get(name, 1))
    return 2 * prod(sizes.values())


def _dims(tensor: Any) -> list[int]:
    dims: list[int | None] = tensor.shape.as_list()  # ValueError where not even their number is known
    if None in dims:
        raise ValueError(dims)
    return [each for each in dims if each is not None]


def _size(tensor: Any) -> int:
    return prod(_dims(tensor))


def _output(operation: Any) -> Any:
    return operation.outputs[0]


def _filters(operation: Any) -> Any:
    return operation.inputs[1]


def _gradient(operation: Any) -> Any:
    return operation.inputs[2]


ALL_BUT_LAST, IMAGE = slice(-1), slice(2)
COUNTED: dict[str, Count] = {
    "MatMul": _matrices,
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _matrices),
    **dict.fromkeys(("Conv2D", "Conv3D"), _convolution(_output, _filters, ALL_BUT_LAST)),
    # Transposed convolutions are gradients, too.
    **dict.fromkeys(
        ("Conv2DBackpropInput", "Conv3DBackpropInputV2"), _convolution(_gradient, _filters, ALL_BUT_LAST)
    ),
    **dict.fromkeys(
        ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), _convolution(_gradient, _output, ALL_BUT_LAST)
    ),
    "DepthwiseConv2dNative": _convolution(_output, _filters, IMAGE),
    "DepthwiseConv2dNativeBackpropInput": _convolution(_gradient, _filters, IMAGE),
    "DepthwiseConv2dNativeBackpropFilter": _convolution(_gradient, _output, IMAGE),
    "Einsum": _einsum,
}
"""How each operation's are counted."""
