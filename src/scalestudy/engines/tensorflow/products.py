"""Floating-point operations of TensorFlow's operations that multiply, by the shapes of what goes in and out.

A product and its addition are two. Element-wise operations, sums and pooling are not counted: they are as
many as there are numbers, a few hundredths of a convolutional network's products.
"""

import re
from collections.abc import Callable
from math import prod
from typing import Any

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
