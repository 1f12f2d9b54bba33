"""What we use of TensorFlow's coordinator that it does not promise to keep; nowhere else. Known in 2.21."""

from collections.abc import Callable
from typing import Any

from tensorflow.python.ops import script_ops

READ = "scalestudy-read"
"""By this name a function of Python is called where a graph runs, in whatever process that is."""
_offered: list[Callable[..., Any]] = []
"""TensorFlow itself only remembers what somebody else holds."""


def offer(read: Callable[..., Any]) -> None:
    """Have graphs that run in this process call `read` where they say `tf.raw_ops.PyFunc(token=READ)`."""
    _offered[:] = [read]
    script_ops._py_funcs._funcs[READ] = read


def wait(value: Any, seconds: float) -> bool:
    """Whether a value that a worker computes is there within that time, or its error is."""
    there: bool = value._status_available_event.wait(seconds)
    return there


def length(value: Any) -> int:
    """Of the list that a worker computes, before it is there."""
    return len(value._type_spec)
