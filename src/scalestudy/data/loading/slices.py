"""A worker's part of a global batch: one shape from the loader to the layers."""

from typing import Any, NamedTuple


class Slice(NamedTuple):
    """What one device computes in a step, or in each step of a call (consecutive steps of one size).

    The loader fills it with arrays and numbers for a whole call, and an engine stages the arrays: makes
    tensors of them where they are computed. Later it takes out one step, and shows that to the layers.

    Attributes:
        inputs: Rows, integers as stored, shape [b, H, W, C]. Of a call [S, b, H, W, C]; what lies beyond
            its `steps` is unused. Of a task with several inputs a dictionary of such.
        targets: Shape [b, ...], or [S, b, ...]; or several by name.
        start: Position of the first row in the global batch.
        count: Rows that are real: b, or 0 when the slice is empty and b is the first row of the
            global batch, which counts for nothing.
        total: Rows of the global batch.
        step: Step of the run, from 0; of a call the first.
        steps: Steps of the call.
        first: Whether no other worker of this step has used the same variables yet. Only workers that are
            computed one after another ever see it false.
    """

    inputs: Any
    targets: Any
    start: Any
    count: Any
    total: Any
    step: Any = 0
    steps: Any = 1
    first: Any = True


Call = tuple[Slice, ...]
"""Consecutive steps of one size, at least one: a slice for every device of a process."""
