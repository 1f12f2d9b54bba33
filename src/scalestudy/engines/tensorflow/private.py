"""What we use of TensorFlow, and of Keras on it, that is not public; nowhere else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from keras.src.backend.tensorflow import trainer as keras_trainer
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph_def
from tensorflow.python.ops.handle_data_util import get_resource_handle_data


def graph_of(function: Any) -> Any:
    """The body of a function (FunctionDef) as a GraphDef, in which each argument is a node of its name."""
    graph, _ = function_def_to_graph_def(function)
    return graph


def variable_of(handle: Any) -> tuple[int, Any] | None:
    """Number of the type, and shape (TensorShapeProto), of the variable that a resource in a graph is of."""
    known = get_resource_handle_data(handle).shape_and_type
    return (known[0].dtype, known[0].shape) if len(known) == 1 else None


def make_argument(node: Any, variable: tuple[int, Any] | None) -> None:
    """Make of a placeholder for a resource (NodeDef) one of which the variable is known."""
    dtype = node.attr["dtype"].type
    for name in list(node.attr):
        del node.attr[name]
    node.op = "_Arg"
    node.attr["T"].type, node.attr["index"].i = dtype, 0
    if variable:
        node.attr["_handle_dtypes"].list.type.append(variable[0])
        node.attr["_handle_shapes"].list.shape.append(variable[1])


def resource_type() -> int:
    """Number of the type of resources."""
    number: int = tf.resource.as_datatype_enum
    return number


@contextmanager
def epochs_by(iterator: Callable[..., Any]) -> Iterator[None]:
    """Within, `fit` and `evaluate` go over what `iterator(**arguments)` gives instead of Keras's own."""
    before = keras_trainer.TFEpochIterator
    keras_trainer.TFEpochIterator = iterator
    try:
        yield
    finally:
        keras_trainer.TFEpochIterator = before
